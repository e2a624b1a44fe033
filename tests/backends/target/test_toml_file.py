"""The text of a target's TOML file."""

import tomllib

import pytest

from abele.backends.target import resolve_target
from abele.backends.target.toml_file import line_of

TEXT = 'base = "mk2"\n\n[exchange]\nsync_cycles = 6\n[ "memory" ]\nbytes_per_tile = 1024\n'


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("base", 1),
        ("exchange", 3),
        ("exchange.sync_cycles", 4),
        ("memory.bytes_per_tile", 6),
        ("memory.reserved_bytes", 0),
    ],
)
def test_a_key_is_found_at_its_line(key: str, line: int):
    assert line_of(TEXT, key) == line


def test_every_value_is_written_with_its_source():
    text = resolve_target("mk1:7").to_toml()
    assert tomllib.loads(text)["exchange"]["pair_factor"] == 1.0
    lines = dict(line.split(" = ") for line in text.splitlines() if " = " in line)
    assert lines["tiles"] == "7  # given, not the preset's of mk1"
    assert lines["pair_factor"].endswith(
        "# assumed: shared buses are documented only for the second chip"
    )
    assert all(" # " in value or value.startswith('"') for value in lines.values())
