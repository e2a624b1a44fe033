from pathlib import Path

from abele.tools.extensions import load_extensions


def test_only_definitions_of_the_file_itself_are_registered(soft: Path):
    found = load_extensions([soft])
    assert [dialect.name for dialect in found.dialects] == ["mine"]
    assert set(found.passes) - set(load_extensions().passes) == {"smooth-relu"}
    assert set(found.targets) == {"small"}
    assert not list(soft.parent.glob("__pycache__"))
