from pathlib import Path

import pytest
from some_extensions import BODY, HEAD, SOFT

from abele.ir.errors import InputError
from abele.tools.extensions import load_extensions


def test_two_files_with_one_name_are_both_named(soft: Path, tmp_path: Path):
    (tmp_path / "other.py").write_text(SOFT)
    with pytest.raises(InputError, match=r"other.py: scalar function 'softsign' .* by .*soft.py"):
        load_extensions([soft, tmp_path / "other.py"])


def test_two_files_with_one_pass_are_both_named(tmp_path: Path):
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(f"{HEAD}    name = 'mine'\n{BODY}")
    with pytest.raises(InputError, match=r"^b.py: pass 'mine' is already defined by a.py"):
        load_extensions(["a.py", "b.py"])
