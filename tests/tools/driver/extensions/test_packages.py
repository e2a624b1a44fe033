from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from some_extensions import BODY, HEAD, abele

from abele.ir.errors import InputError
from abele.tools.driver.extensions import load
from abele.tools.driver.extensions.points import GROUP
from abele.tools.extensions import load_extensions


def test_an_installed_package_is_loaded_without_asking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relu: Path
):
    (tmp_path / "whitepoplar.py").write_text(
        f"{HEAD}    name = 'poplar'\n{BODY}\nfrom abele.tools.extensions import Extension\n"
        "GATHERED = Extension(passes=[Mine])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for value in ("whitepoplar", "whitepoplar:GATHERED"):
        points = (EntryPoint("white", value, GROUP),)
        monkeypatch.setattr(load, "extension_points", lambda points=points: points)
        assert "poplar" in load_extensions().passes
        result = abele("opt", relu, "-p", "poplar")
        assert result.exit_code == 0, result.stderr


def test_a_package_that_cannot_be_loaded_is_named(monkeypatch: pytest.MonkeyPatch):
    points = (EntryPoint("white", "no_such_package", GROUP),)
    monkeypatch.setattr(load, "extension_points", lambda: points)
    with pytest.raises(InputError, match=r"installed extension white \(no_such_package\): cannot"):
        load_extensions()
