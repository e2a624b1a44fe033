from pathlib import Path

import pytest

from abele.ir.errors import InputError
from abele.tools.manual import __main__ as manual
from abele.tools.manual.markdown import NOTE


def test_only_pages_of_the_reference_are_replaced_or_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(manual, "pages", lambda: {Path("a.md"): f"{NOTE}\nnew"})
    (tmp_path / "old.md").write_text(f"{NOTE}\nold")
    (tmp_path / "mine.md").write_text("mine")
    manual.write_reference(tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.md", "mine.md"]
    (tmp_path / "a.md").write_text("mine")
    with pytest.raises(InputError, match=r"a\.md: not a page of the reference"):
        manual.write_reference(tmp_path)
    assert (tmp_path / "a.md").read_text() == "mine"
