from pathlib import Path

import pytest
from some_models import convolutions

from abele.ir.errors import InputError
from abele.tools import compile_model
from abele.tools.driver.dump.folder import check_dump


def test_a_page_of_another_program_is_not_overwritten(tmp_path: Path):
    (tmp_path / "index.html").write_text("<p>mine</p>")
    with pytest.raises(InputError, match=r"index.html: not a page of abele's"):
        check_dump(tmp_path, "net.onnx")
    with pytest.raises(InputError, match=r"index.html"):
        compile_model(convolutions(), "tiny", dump_ir=tmp_path)
    assert (tmp_path / "index.html").read_text() == "<p>mine</p>"
