"""A target reads back as it was written, and a wrong value is refused by name."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.backends.fabrics.crossbar import Crossbar
from abele.backends.fabrics.mesh import Mesh
from abele.backends.target import PRESETS, Target, named_target, resolve_target
from abele.ir.errors import InputError


@pytest.mark.parametrize("name", PRESETS)
def test_preset_is_spelled_by_its_name(name):
    target = resolve_target(name)
    assert target.name == target.base == target.spelling() == name
    assert target.overrides() == {}


@pytest.mark.parametrize("name", PRESETS)
def test_preset_survives_toml(name):
    target = resolve_target(name)
    text = target.to_toml()
    assert Target.from_toml(text) == target
    assert Target.from_toml(text).to_toml() == text


@given(
    st.sampled_from(sorted(PRESETS)),
    st.integers(1, 3_000),
    st.integers(1, 10_000),
    st.floats(1e-3, 1, exclude_min=True),
    st.floats(1e6, 1e11),
)
def test_spelling_and_toml_give_an_equal_target(base, tiles, sync, efficiency, clock):
    tiles *= PRESETS[base].chips
    text = (
        f"{base}:{tiles},exchange.sync_cycles={sync},exchange.efficiency={efficiency!r},"
        f"clock_hz={clock!r},amp.float16_float16.units=4,name=mine"
    )
    target = resolve_target(text)
    assert target.tiles == tiles
    assert target.name == "mine"
    assert target.exchange.efficiency == efficiency
    assert resolve_target(target.spelling()) == target
    assert resolve_target(target.spelling()).spelling() == target.spelling()
    assert Target.from_toml(target.to_toml()) == target


def test_a_spelling_omits_values_of_the_preset():
    assert resolve_target("mk2:1472,exchange.sync_cycles=118").spelling() == "mk2"
    assert resolve_target("mk2,clock_hz=2,tiles=4").spelling() == "mk2:4,clock_hz=2.0"


def test_file_is_a_preset_and_what_differs(tmp_path):
    file = tmp_path / "small.toml"
    file.write_text('base = "mk2"\nname = "small"\ntiles = 8\n[memory]\nbytes_per_tile = 65536\n')
    target = resolve_target(str(file))
    assert (target.name, target.tiles, target.bytes_per_tile) == ("small", 8, 65536)
    assert target.exchange == PRESETS["mk2"].exchange
    assert target.usable_bytes_per_tile == 65536 - target.memory.reserved_bytes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('base = "mk9"', r"f.toml:1: base: 'mk9'; need one of tiny, mk1"),
        ("tiles = 4", r"f.toml: no base; need a line such as base = .mk2., with one of tiny, mk1"),
        ('base = "mk2"\nworker = 6', r"f.toml:2: worker: no such key; .*did you mean workers"),
        ('base = "mk2"\n[exchange]\nsync = 6', r"f.toml:3: exchange.sync: no such key; .*sync_cyc"),
        ('base = "mk2"\nexchange = 6', r"f.toml:2: exchange: a table, not a value"),
        ('base = "mk2"\ntiles = 0', r"f.toml:2: tiles: 0; need an integer in 1..1e\+06"),
        ('base = "mk2"\ntiles = 1_000_001', r"f.toml:2: tiles: 1000001; need an integer"),
        ('base = "mk2"\ntiles = true', r"f.toml:2: tiles: True; need an integer"),
        ('base = "mk2"\ntiles = 4.0', r"f.toml:2: tiles: 4.0; need an integer"),
        ('base = "mk2"\n\nclock_hz = nan', r"f.toml:3: clock_hz: nan; need a number"),
        ('base = "mk2"\nclock_hz = "fast"', r"f.toml:2: clock_hz: 'fast'; need a number"),
        ('base = "mk2"\nclock_hz = inf', r"f.toml:2: clock_hz: inf; need a number"),
        ('base = "mk2"\nname = "a b"', r"f.toml:2: name: 'a b'; need a letter"),
        (
            'base = "mk2"\n[exchange]\nword_bytes = 4\n[memory]\nbytes_per_tile = [1]',
            r"f.toml:5: memory.bytes_per_tile: \[1\]; need an integer",
        ),
        (
            'base = "mk2"\n[memory]\nreserved_bytes = 638976',
            r"f.toml:3: .*memory.reserved_bytes: 638976; need less than memory.bytes_per_tile",
        ),
        ('base = "mk2"\ntiles = \n', r"f.toml: not TOML: .*line 2"),
        (f'base = "mk2"\n\ntiles = {"9" * 5000}\n', r"f.toml:3: a number of too many digits"),
        (f'base = "mk2"\ntiles = 0x{"f" * 5000}\n', r"f.toml:2: tiles: .*; need an integer"),
        (f'base = "mk2"\ntiles = {"[" * 5000}\n', r"f.toml:2: nested too deeply"),
    ],
)
def test_bad_file_is_refused_with_its_line_and_key(text, message):
    with pytest.raises(InputError, match=message):
        Target.from_toml(text, "f.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mk3", r"'mk3' is not a preset; need one of tiny, mk1, mk2, bow, c600"),
        ("", "'' is not a preset"),
        ("mk2:", "tiles: ''; need an integer"),
        (f"mk2:{'9' * 5000}", "tiles: .*; need an integer"),
        (f"mk2:0x{'f' * 5000}", "tiles: .*; need an integer"),
        (f"mk2,workers={'[' * 5000}", "workers: .*; need an integer"),
        ("mk2:-1", "tiles: '-1'; need an integer"),
        ("mk2:0", "tiles: 0; need an integer"),
        ("mk2,tiles", "'tiles': need KEY=VALUE"),
        ("mk2,tile=1", "tile: no such key"),
        ("missing.toml", "'missing.toml': cannot be read: No such file or directory$"),
    ],
)
def test_bad_name_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        resolve_target(text)


def test_only_the_user_may_name_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("own.toml", "own", "mk2:64", "mk2"):
        Path(name).write_text('base = "mk1"')
    assert resolve_target("own.toml").base == resolve_target("own").base == "mk1"
    # A file does not hide a target.
    assert resolve_target("mk2:64") == named_target("mk2:64") == resolve_target("mk2:64,tiles=64")
    with pytest.raises(InputError, match=r"a program cannot name a file; .*give --target own.toml"):
        named_target("own.toml")
    for text in ("own", "/etc/hostname", "./own"):
        with pytest.raises(InputError, match="is not a preset; need one of .* NAME:TILES$"):
            named_target(text)


def test_a_target_names_its_fabric_and_its_units():
    text = "mk2:64,exchange.fabric=mesh,exchange.hop_cycles=5,units=outer+mac,mac.worker_cycles=9"
    target = resolve_target(text)
    assert target.exchange == Mesh(hop_cycles=5)
    assert [each.kind for each in target.units] == ["outer", "mac"]
    assert target.mac.worker_cycles == 9
    assert resolve_target(target.spelling()) == target
    assert Target.from_toml(target.to_toml()) == target
    assert target.conv_units("float16", "float32") is None
    with pytest.raises(InputError, match="no unit 'amp'; it has outer, mac"):
        _ = target.amp
    back = resolve_target("mesh,exchange.fabric=crossbar")
    assert back.exchange == Crossbar()
    assert back.spelling() == "mesh,exchange.fabric=crossbar"
    # The order of units does not say which class each of them has.
    assert resolve_target("mk2,units=outer+mac+slic+amp").spelling() != "mk2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "mk2,exchange.fabric=cube",
            "exchange.fabric: 'cube'; need one of crossbar, ipu21, mesh, or --",
        ),
        ("mk2,exchange.fabric=3", "exchange.fabric: 3; need one of crossbar, ipu21, mesh"),
        ("mk2,exchange.hop_cycles=3", "exchange.hop_cycles: no such key"),
        ("mesh,exchange.route_cycles=3", "exchange.route_cycles: no such key"),
        ("mk2,exchange.fabric=mesh,exchange.rows=0", "exchange.rows: 0; need an integer in 1"),
        (
            "mk2,units=mac+mac",
            r"units: 'mac\+mac'; need one of amp, slic, mac, outer, or several",
        ),
        ("mk2,units=", "units: ''; need one of amp, slic, mac, outer"),
        ("mk2,units=mac,amp.pass_cycles=2", "amp.pass_cycles: no such key"),
    ],
)
def test_a_wrong_fabric_or_unit_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        resolve_target(text)


def test_a_file_that_names_no_fabric_of_abeles_is_refused_with_its_line():
    text = 'base = "mk2"\n\n[exchange]\nsync_cycles = 6\nfabric = "cube"\n'
    with pytest.raises(InputError, match=r"f.toml:5: exchange.fabric: 'cube'; need one of"):
        Target.from_toml(text, "f.toml")
    text = 'base = "mk2"\nunits = ["mac"]\n'
    with pytest.raises(InputError, match=r"f.toml:2: units: \['mac'\]; need one of"):
        Target.from_toml(text, "f.toml")


def test_to_dict_has_every_value():
    values = resolve_target("mk2:7").to_dict()
    assert values["tiles"] == 7
    assert values["amp"]["float16_float16"]["units"] == 16


@pytest.mark.parametrize(
    ("text", "chips"),
    [
        ("mk1", 1),
        ("mk1:1216", 1),
        ("mk1:1217", 2),
        ("mk1:3648", 3),
        ("mk2:64", 1),
        ("tiny:5000", 1),
    ],
)
def test_a_chip_with_the_tiles_of_several_says_that_no_links_are_priced(text: str, chips: int):
    target = resolve_target(text)
    assert target.chips == 1
    assert (f"{text} has as many tiles as {chips} chips" in target.unpriced) == (chips > 1)


@pytest.mark.parametrize(
    ("text", "chips", "tiles"),
    [
        ("mk1x2", 2, 1216),
        ("mk1x16", 16, 1216),
        ("mk2x4:64", 4, 16),
        ("bow-pod64", 64, 1472),
        ("bow-pod256", 256, 1472),
        ("c600x2", 2, 1472),
        ("tiny:12,links.topology=torus,links.chips=4", 4, 3),
    ],
)
def test_the_tiles_of_a_machine_are_those_of_all_chips(text: str, chips: int, tiles: int):
    target = resolve_target(text)
    assert (target.chips, target.tiles_per_chip, target.tiles) == (chips, tiles, chips * tiles)
    assert target.unpriced == ""
    assert Target.from_toml(target.to_toml()) == target
    assert resolve_target(target.spelling()) == target


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tiny:8,links.chips=2", "links.chips: 2 chips without links; need links.topology"),
        ("mk1x2:5", "tiles: 5 on 2 chips; need a multiple"),
        ("tiny:9,links.topology=ladder,links.chips=3", "3 chips in rows of 2; need a multiple"),
        ("bow-pod256,links.domain=6", "6 chips in a torus of machines of 4; need a multiple"),
        ("bow-pod256,links.chips=100", "100 chips in tori of 64; need a multiple"),
        ("mesh:4,links.topology=ladder,links.chips=2", "2 with a mesh; need one chip"),
        ("mk1x2,links.rail_gbytes=0", "links.rail_gbytes: 0; need a number in 0.001..1e+06"),
        ("mk1,links.topology=star", "need one of none, ladder, torus, pod"),
    ],
)
def test_chips_that_cannot_be_joined_are_refused(text: str, problem: str):
    with pytest.raises(InputError, match=re.escape(problem)):
        resolve_target(text)
