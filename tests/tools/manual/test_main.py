from pathlib import Path

import pytest

from abele.tools.manual import __main__ as manual
from abele.tools.manual.markdown import NOTE


def test_only_pages_of_the_reference_are_replaced_or_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(manual, "pages", lambda: {Path("a.md"): f"{NOTE}\nnew"})
    (tmp_path / "old.md").write_text(f"{NOTE}\nold")
    (tmp_path / "mine.md").write_text("mine")
    assert manual.main([str(tmp_path)]) == 0
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.md", "mine.md"]
    (tmp_path / "a.md").write_text("mine")
    assert manual.main([str(tmp_path)]) == 2
    assert "a.md: not a page of the reference" in capsys.readouterr().err
    assert (tmp_path / "a.md").read_text() == "mine"
