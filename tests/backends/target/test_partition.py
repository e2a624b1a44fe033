"""A partition of a pod is a target of its first chips, and of the links among them."""

from __future__ import annotations

from pathlib import Path

import pytest

from abele.backends.target import PRESETS, Target, resolve_target
from abele.ir.errors import InputError


def partition(base: str, lines: str, before: str = "") -> Target:
    return Target.from_toml(f'base = "{base}"\n{before}\n[partition]\n{lines}\n', "pod.toml")


@pytest.mark.parametrize(
    ("base", "chips", "preset"),
    [
        ("bow-pod256", 256, "bow-pod256"),
        ("bow-pod256", 64, "bow-pod64"),
        ("bow-pod256", 16, "bow-pod16"),
        ("bow-pod64", 16, "bow-pod16"),
        ("bow-pod64", 1, "bow"),
        ("mk1x16", 2, "mk1x2"),
    ],
)
def test_a_partition_of_a_preset_may_be_a_preset(base: str, chips: int, preset: str):
    assert partition(base, f"chips = {chips}") == PRESETS[preset]


def test_a_part_of_a_torus_is_a_ladder_and_a_torus_may_be_used_as_one():
    assert partition("bow-pod64", "chips = 32").links.kind == "ladder"
    assert partition("bow-pod64", "chips = 64").links.kind == "torus"
    ladder = partition("bow-pod64", 'chips = 64\ntopology = "ladder"')
    assert (ladder.links.kind, ladder.chips, ladder.tiles) == ("ladder", 64, 64 * 1472)
    assert ladder.links.routes().link.max() < PRESETS["bow-pod64"].links.routes().link.max()


@pytest.mark.parametrize("sync", [1, 4, 16])
def test_a_partition_names_the_chips_of_its_sync_groups(sync: int):
    found = partition("bow-pod64", f"chips = 16\nsync = {sync}")
    assert found.links.meeting_chips == sync
    assert partition("bow-pod64", "chips = 16").links.meeting_chips == 0


def test_a_partition_has_the_facts_of_its_pod(tmp_path: Path):
    path = tmp_path / "pod.toml"
    path.write_text(
        'base = "bow-pod64"\nname = "mine"\n[links]\nrail_gbytes = 50.0\n[partition]\nchips = 8\n'
    )
    found = resolve_target(str(path))
    assert (found.chips, found.tiles, found.name) == (8, 8 * 1472, "mine")
    assert found.to_dict()["links"]["rail_gbytes"] == 50.0
    assert resolve_target(found.spelling()) == found
    assert Target.from_toml(found.to_toml()) == found


@pytest.mark.parametrize(
    ("base", "lines", "says"),
    [
        ("bow-pod64", "chips = 12", "pod.toml:4: partition.chips: 12; need a power of two"),
        ("bow-pod64", "chips = 0", "partition.chips: 0; need a power of two"),
        ("bow-pod64", "chips = -4", "partition.chips: -4; need a power of two"),
        ("bow-pod64", "chips = true", "partition.chips: True; need a power of two"),
        ("bow-pod64", "chips = 16.0", "partition.chips: 16.0; need a power of two"),
        ("bow-pod64", 'chips = "16"', "partition.chips: '16'; need a power of two"),
        ("bow-pod64", "chips = 128", "partition.chips: 128; bow-pod64 has 64"),
        ("mk2", "chips = 2", "partition.chips: 2; mk2 has 1"),
        ("bow-pod64", "", "pod.toml:3: partition: no chips; need a line such as chips = 16"),
        ("bow-pod64", "chip = 16", "partition.chip: no such key; need chips or"),
        (
            "bow-pod64",
            'chips = 16\ntopology = "torus"',
            "pod.toml:5: partition.topology: 'torus'; 16 of 64 chips of a torus can be a ladder",
        ),
        ("bow-pod256", 'chips = 128\ntopology = "ladder"', "of a pod can be a pod"),
        ("bow-pod64", "chips = 16\nsync = 3", "pod.toml:5: partition.sync: 3; need a power of two"),
        (
            "bow-pod64",
            "chips = 16\nsync = 32",
            "partition.sync: 32; need a power of two of at most",
        ),
        ("bow-pod64", "chips = 16\nsync = true", "partition.sync: True; need a power of two"),
        ("bow-pod64", "chips = 16\ntopology = 3", "partition.topology: 3; 16 of 64"),
        ("bow-pod64", "[partition.chips]\na = 1", "partition.chips: {'a': 1}; need a power of two"),
    ],
)
def test_a_partition_that_no_pod_has_is_refused(base: str, lines: str, says: str):
    with pytest.raises(InputError) as error:
        partition(base, lines)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_partition_is_a_table():
    with pytest.raises(InputError, match=r"t\.toml:2: partition: 16; need a table with chips"):
        Target.from_toml('base = "bow-pod64"\npartition = 16\n', "t.toml")


@pytest.mark.parametrize("key", ["rail_gbytes", "rung_gbytes"])
def test_a_link_that_carries_nothing_is_refused(key: str):
    with pytest.raises(InputError, match=rf"t\.toml:3: links\.{key}: 0; need a number in 0\.001"):
        Target.from_toml(f'base = "mk1x4"\n[links]\n{key} = 0\n', "t.toml")


@pytest.mark.parametrize(
    ("text", "chips", "spelling"),
    [
        ("mk1", 4, "mk1x4"),
        ("mk2", 4, "mk2x4"),
        ("bow", 16, "bow-pod16"),
        ("bow", 64, "bow-pod64"),
        ("bow", 256, "bow-pod256"),
        ("mk2x4", 1, "mk2"),
        ("mk2x4", 4, "mk2x4"),
        ("tiny:3", 2, "tiny:6,links.chips=2,links.topology=ladder"),
        ("tiny:3,links.topology=torus", 4, "tiny:12,links.chips=4,links.topology=torus"),
        ("mk1x16", 6, "mk1x16:7296,links.chips=6"),
        ("mk1,name=own", 2, "mk1:2432,links.chips=2,links.topology=ladder,name=own"),
    ],
)
def test_a_machine_of_the_first_chips_and_of_several(text: str, chips: int, spelling: str):
    found = resolve_target(text).with_chips(chips)
    assert found.spelling() == spelling
    assert resolve_target(spelling) == found


@pytest.mark.parametrize(
    ("text", "chips", "says"),
    [
        ("mk1x4", 8, "8 chips; mk1x4 has 4"),
        ("mk1", 3, "3 chips in rows of 2; need a multiple"),
        ("bow", 96, "96 chips in tori of 64; need a multiple"),
        ("mesh", 2, "with a mesh; need one chip"),
        ("mk1", 2048, "need an integer in 1..1e+06"),
        ("mk1", 10**9, "need an integer in 1.."),
    ],
)
def test_chips_that_no_topology_has_are_refused(text: str, chips: int, says: str):
    with pytest.raises(InputError) as error:
        resolve_target(text).with_chips(chips)
    assert says in str(error.value)
