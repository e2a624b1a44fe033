from pathlib import Path

import pytest

from abele.ir.errors import InputError
from abele.tools.views.scan.formats import FORMATS, check_format


@pytest.mark.parametrize("ending", FORMATS)
def test_known_endings_in_capitals_are_accepted(ending: str):
    check_format(Path(f"a.b/c{ending}"))
    check_format(Path(f"a.b/c{ending.upper()}"))


@pytest.mark.parametrize("name", ["scan", "scan.gif", "scan.png.txt"])
def test_others_are_refused(name: str):
    with pytest.raises(InputError, match="unknown picture format"):
        check_format(Path(name))
