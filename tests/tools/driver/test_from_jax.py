"""Functions of JAX as models, where JAX is installed."""

import sys
from typing import Any

import numpy as np
import pytest

from abele.ir.support.errors import InputError
from abele.tools import compile_model, from_jax


def test_without_jax_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(InputError, match="from_jax needs JAX, pip install jax"):
        from_jax(lambda x: x, 1.0)


@pytest.fixture
def jax() -> Any:
    return pytest.importorskip("jax")


P = {"w": np.array([1, 2, 3], np.float32), "b": np.float32(2)}
X = np.array([1, 2, 4], np.float32)


def affine(params, x, *more, scale=1.0):
    return {"y": params["w"] * x + params["b"] * scale, "more": sum(more, x[0])}


@pytest.mark.usefixtures("jax")
def test_inputs_and_outputs_have_the_names_of_leaves():
    model = from_jax(affine, P, X, np.float32(1), kwargs={"scale": 3.0}, weights="params['b']")
    assert {name: array.tolist() for name, array in model.weights.items()} == {"params['b']": 2}
    exe = compile_model(model, target="tiny:2", cache=False)
    assert [each.name for each in exe.inputs] == ["params['w']", "x", "more[0]", "scale"]
    found = exe.run(
        {"params['w']": P["w"], "x": X, "more[0]": np.float32(1), "scale": np.float32(3)}
    )
    assert {name: array.tolist() for name, array in found.items()} == {
        "result['more']": 2,
        "result['y']": [7, 10, 18],
    }


@pytest.mark.usefixtures("jax")
def test_operations_have_the_lines_of_the_function():
    exe = compile_model(from_jax(affine, P, X), target="tiny:2", cache=False)
    line = affine.__code__.co_firstlineno + 1
    places = [str(op.location) for op in exe.module_at("nn").walk()]
    assert any(f'"test_from_jax.py":{line}' in place for place in places)
    assert not any("from_jax.py" in place for place in places)


@pytest.mark.usefixtures("jax")
@pytest.mark.parametrize("weights", ["param", ["params", "params['c']"]])
def test_weights_that_no_argument_has_are_refused(weights: Any):
    with pytest.raises(InputError, match="from_jax: weights: no argument"):
        from_jax(affine, P, X, weights=weights)


@pytest.mark.usefixtures("jax")
def test_what_jax_cannot_trace_has_its_reason():
    def branches(x):
        return x if x > 0 else -x

    with pytest.raises(InputError, match=r"cannot trace branches: TracerBoolConversionError"):
        from_jax(branches, 1.0)


def test_what_jax_lowers_and_exports_is_a_model(jax: Any):
    lowered = jax.jit(affine).lower(P, X)
    exported = jax.export.export(jax.jit(affine))(P, X)
    for model in (lowered, exported):
        exe = compile_model(model, target="tiny:2", cache=False)
        found = exe.run({"params['w']": P["w"], "params['b']": P["b"], "x": X})
        assert found["result['y']"].tolist() == [3, 6, 14]


@pytest.mark.usefixtures("jax")
def test_complex_arguments_and_results_are_two_each():
    w = np.array([1 + 2j, 3 - 1j], np.complex64)
    model = from_jax(lambda w, x: (w * x, x.real), w, w, weights="w")
    assert {name: each.tolist() for name, each in model.weights.items()} == {
        "w.real": [1, 3],
        "w.imag": [2, -1],
    }
    exe = compile_model(model, target="tiny:2", keep={"w": "result[0]"}, cache=False)
    assert [each.name for each in exe.inputs] == ["x.real", "x.imag"]
    for _ in range(2):
        assert exe.run({"x.real": w.real, "x.imag": w.imag})["result[1]"].tolist() == [1, 3]
    assert exe.states["w.real"].tolist() == (w**3).real.tolist()
    assert exe.states["w.imag"].tolist() == (w**3).imag.tolist()
