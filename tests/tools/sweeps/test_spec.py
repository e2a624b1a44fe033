import tomllib
from pathlib import Path
from typing import Any

import pytest

from abele.backends.target import PRESETS, resolve_target
from abele.ir.support.errors import InputError
from abele.tools.driver.request import Request
from abele.tools.sweeps.points import point_at, some_numbers
from abele.tools.sweeps.spec import Spec, machine_of, read_spec, spec_of

LIGHT = {"light": "squeezenet"}


def spec(**tables: Any) -> Spec:
    return spec_of({"model": [LIGHT], **tables}, "s.toml", Path())


def test_the_grid_is_every_model_on_every_target_with_all_options():
    read = spec(
        model=[{**LIGHT, "batch": [1, 2]}, {"light": "alexnet"}],
        target=[{"base": ["mk1", "mk2"], "tiles": {"from": 4, "to": 8, "step": 4}}],
        options={"io_tiles": [0, 8]},
    )
    assert read.size == (2 + 1) * 4 * 2
    points = [point_at(read, number) for number in range(read.size)]
    assert len({repr(each) for each in points}) == read.size
    assert [each.options["io_tiles"] for each in points[:2]] == [0, 8]
    assert [each.target["tiles"] for each in points[:4:2]] == [4, 8]
    assert points[-1].name == "alexnet"
    assert points[8].request == {"batch": 2, "io_tiles": 0}


def test_what_a_model_says_goes_before_the_options():
    read = spec(model=[{**LIGHT, "batch": 3}], options={"batch": 5, "precision": "float16"})
    assert point_at(read, 0).request == {"batch": 3, "precision": "float16"}


def test_sizes_and_training_are_tables_whose_keys_have_values():
    read = spec(
        model=[{**LIGHT, "dims": {"past": [0, 64]}, "training": {"optimizer": ["sgd", "adam"]}}]
    )
    requests = [point_at(read, k).request for k in range(read.size)]
    assert requests[1] == {"dims": {"past": 0}, "training": {"optimizer": "adam"}}
    assert requests[2]["dims"] == {"past": 64}


def test_a_random_plan_takes_distinct_points_which_the_seed_decides():
    def numbers(seed: int) -> list[int]:
        plan = {"kind": "random", "points": 50, "seed": seed}
        target = {"tiles": {"from": 1, "to": 10**9, "step": 1}}
        return list(some_numbers(spec(target=[target], plan=plan)))

    assert len(set(numbers(1))) == 50
    assert numbers(1) == numbers(1) != numbers(2)
    assert max(numbers(1)) > 10**8


def test_values_of_a_chip_come_before_the_chips_and_those_of_links_after():
    found = machine_of(
        {
            "base": "mk2",
            "chips": 2,
            "tiles": 64,
            "memory.bytes_per_tile": 2**20,
            "links.rung_gbytes": 99.0,
        }
    )
    assert (found.chips, found.tiles, found.bytes_per_tile) == (2, 128, 2**20)
    assert found.links == resolve_target("mk2").with_chips(2).links.__class__(
        **{**vars(resolve_target("mk2").with_chips(2).links), "rung_gbytes": 99.0}
    )


def test_a_target_may_be_a_file_beside_the_spec(tmp_path: Path):
    (tmp_path / "mine.toml").write_text('base = "mk2"\nname = "mine"\ntiles = 12\n')
    (tmp_path / "s.toml").write_text(
        '[[model]]\nlight = "alexnet"\n[[target]]\nbase = ["mine.toml", "mk1"]\n'
    )
    read = read_spec(tmp_path / "s.toml")
    machines = [machine_of(point_at(read, k).target) for k in range(2)]
    assert [each.tiles for each in machines] == [12, PRESETS["mk1"].tiles]


@pytest.mark.parametrize(
    ("tables", "problem"),
    [
        ({"models": []}, "no such key 'models'; did you mean model"),
        ({"model": []}, r"need at least one table \[\[model\]\]"),
        ({"model": [{}]}, "need either file, the path of a model, or light"),
        ({"model": [{"file": "no.onnx"}]}, "no.onnx: there is no such file"),
        ({"model": [{"light": "squeezent"}]}, "did you mean squeezenet"),
        ({"model": [{**LIGHT, "batches": 1}]}, "model: batches: no such key; did you mean batch"),
        ({"model": [{**LIGHT, "batch": "1"}]}, "model: batch: '1'; need a whole number"),
        ({"model": [{**LIGHT, "batch": []}]}, "batch: an empty list"),
        ({"model": [{**LIGHT, "precision": "float17"}]}, "'float17'; need 'float16' or"),
        ({"model": [{**LIGHT, "dims": {"n": "x"}}]}, "dims.n: 'x'; need a size"),
        ({"model": [{**LIGHT, "dims": 3}]}, "dims: need a table"),
        ({"model": [{**LIGHT, "training": {"los": "x"}}]}, "no option of the pass train"),
        ({"model": 3}, r"need tables \[\[model\]\]"),
        ({"model": [LIGHT, 3]}, "model 2: need a table"),
        ({"target": [{"base": "mk3"}]}, "'mk3' is not a preset"),
        ({"target": [{"base": 2}]}, "need the name of a target"),
        ({"target": [{"tile": 4}]}, "target: tile: no such value of a target; did you mean tiles"),
        ({"target": [{"memory": {"bytes": 4}}]}, "memory.bytes: no such value"),
        ({"target": [{"tiles": {"from": 4, "to": 1, "step": 1}}]}, "tiles: an empty range"),
        ({"options": {"shard": 3}}, "options: shard: 3; need a list of shards"),
        ({"options": {"target": "mk2"}}, "options: target: no such key"),
        ({"plan": {"kind": "all"}}, "kind: 'all'; need one of grid, random, halving"),
        ({"plan": {"kind": "random"}}, "points: 0; need a whole number from 1"),
        ({"plan": {"kind": "random", "points": 9}}, "9 points of 1; need at most"),
        ({"plan": {"points": 9}}, "plan: no such key 'points'"),
        ({"plan": {"kind": "halving"}}, "along: need the key"),
        ({"plan": {"kind": "halving", "along": "batch"}}, "along: no key 'batch'"),
        ({"plan": {"kind": "halving", "along": "light"}}, "light has one value; need several"),
        ({"plan": {"kind": "halving", "along": "light", "keep": 1.5}}, "need a share between"),
        ({"result": {"best": "items_per_s"}}, "need min or max, and a figure"),
        ({"result": {"best": "max items +"}}, "result: best: max .*not understood"),
        ({"result": {"constraints": ["chips"]}}, "not understood.*need a comparison"),
        ({"result": {"pareto": ["min tiles"]}}, "1 goals; need two"),
        ({"result": {"tables": ["cycles tiles"]}}, "cycles tiles: need two columns"),
        ({"result": {"worst": "x"}}, "no such key 'worst'"),
        ({"load": "x.py"}, "load: need a list of paths"),
    ],
)
def test_a_spec_that_says_nothing_possible_is_refused(tables: Any, problem: str):
    with pytest.raises(InputError, match=problem):
        spec(**tables)


def test_too_many_points_are_refused_with_their_number():
    target = {"tiles": {"from": 1, "to": 10**9, "step": 1}}
    with pytest.raises(InputError, match=r"1,000,000,000 points; at most 100,000 sweep points"):
        spec(target=[target])


@pytest.mark.parametrize("text", ["[[model]", "a = 1\na = 2", "\0"])
def test_a_file_that_is_no_toml_is_refused(text: str, tmp_path: Path):
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(InputError, match="not TOML"):
        read_spec(tmp_path / "s.toml")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_spec(tmp_path / "s.toml")


EXAMPLES = Path(__file__).parents[3] / "examples" / "sweeps"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_the_machines_and_requests_of_example_specs_are_allowed(path: Path, tmp_path: Path):
    # The models of files are large; what reads a spec only asks whether they are there.
    models = tmp_path / "models"
    models.mkdir()
    (models / "gpt2-medium.onnx").write_bytes(b"")
    folder = tmp_path / "examples" / "sweeps"
    folder.mkdir(parents=True)
    read = spec_of(tomllib.loads(path.read_text()), path.name, folder)
    points = [point_at(read, number) for number in range(read.size)]
    assert 30 >= len({repr(each.target) for each in points}) > 1
    for each in {repr(each.target): each.target for each in points}.values():
        assert machine_of(each).tiles > 1
    for each in points:
        request = {k: v for k, v in each.request.items() if k != "training"}
        Request("model.onnx", **request).check("a sweep")
