import pytest
from some_models import model, node

from abele.ir.upstream import VerifyException
from abele.tools import compile_model


def test_composites_that_are_left_are_blamed_on_decompose(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("abele.passes.decompose.Decompose.apply", lambda *_: None)
    proto = model([node("Softmax", "x", "y")], {"x": [2, 3]}, ["y"])
    with pytest.raises(VerifyException, match=r"after pass 'decompose' .*nn.softmax is not legal"):
        compile_model(proto, "tiny")
