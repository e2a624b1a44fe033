"""abele memory: what fills the fullest tile, by category and layer, and what would free memory."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from shlex import split

import onnx
import pytest
from lengths import large
from some_models import model, node, random
from training import training_step
from typer.testing import CliRunner

from abele.tools.cli import app

TELLS_AT_ITS_END = """
import atexit, json, time
from large_graph import peak_bytes
from abele.tools.cli import app

@atexit.register
def told():
    print(json.dumps({"peak_bytes": peak_bytes(), "seconds": time.process_time()}))

app()
"""
"""A command that says what it took of the processor, and of memory."""

NARROW = "narrow-floats,nn,partition,tile,exchange"

NARROWER = "--precision float16"

TIGHT = "tiny:4,memory.bytes_per_tile=12000,memory.reserved_bytes=4000"

SMALL = "tiny:4,memory.bytes_per_tile=20000,memory.reserved_bytes=4000"


pytestmark = pytest.mark.usefixtures("net")


def memory(*arguments: str):
    return CliRunner().invoke(app, ["memory", "net.onnx", *arguments])


def written(*arguments: str) -> dict:
    result = memory("--json", "out.json", *arguments)
    assert result.exit_code in (0, 3), result.output
    return json.loads(Path("out.json").read_text())


def test_a_program_with_more_tiles_than_the_target_does_not_fit(on_four_tiles: str):
    result = CliRunner().invoke(app, ["memory", on_four_tiles, "--target", "tiny:2"])
    assert result.exit_code == 3
    assert "error: does not fit: it needs 4 tiles, and the target has 2\n" in result.output


@pytest.mark.parametrize(
    "target",
    [
        "tiny:4",
        "tiny:16",
        # Less is reserved than code takes, or much more.
        "tiny:4,memory.reserved_bytes=100",
        "mk2:64,memory.reserved_bytes=200000",
    ],
)
def test_the_rows_of_the_table_add_up_to_its_total(target: str):
    result = memory("--target", target)
    assert result.exit_code == 0, result.output
    first = result.stdout.partition("layers on this tile")[0]
    rows = [
        (name.strip(), int(size.replace(",", "")))
        for name, size in re.findall(r"│ ([a-z ,]+?) +│ +([0-9,]+) │ +[0-9.]+% │", first)
    ]
    *parts, (last, total) = rows
    assert last == "all"
    assert len(parts) == 8
    assert total == sum(size for _, size in parts)


def test_a_fit_of_the_variables_alone_is_one_statement():
    own = "memory.bytes_per_tile={},memory.reserved_bytes=100"
    roomy = memory("--target", f"tiny:4,{own.format(200_000)}")
    assert "are reserved; they fit beside the variables of this tile; set memory" in roomy.output
    found = json.loads(Path("out.json").read_text()) if Path("out.json").exists() else None
    result = memory("--target", f"tiny:4,{own.format(200_000)}", "--json", "out.json")
    found = json.loads(Path("out.json").read_text())
    needed = sum(found["categories"].values())
    tight = memory("--target", f"tiny:4,{own.format(needed - 1)}", "--json", "out.json")
    assert (result.exit_code, tight.exit_code) == (0, 0), tight.output
    assert "are reserved; the variables fit, but beside them the tile lacks " in tight.output


def test_categories_add_up_to_the_bytes_that_a_run_reports():
    result = memory("--target", "tiny:4", "--json", "out.json")
    assert result.exit_code == 0, result.output
    found = json.loads(Path("out.json").read_text())
    kinds = found["categories"]
    weights = 4 * (256 * 64 + 64 * 32)
    assert found["all_always_live"] == weights
    assert kinds["always live"] >= weights / 4
    own = sum(kinds[each] for each in ("always live", "live now", "gaps"))
    profile = CliRunner().invoke(
        app, ["run", "net.onnx", "--target", "tiny:4", "--profile", "p.json"]
    )
    assert profile.exit_code == 0, profile.output
    figures = json.loads(Path("p.json").read_text())
    assert own + found["reserved"] == figures["max_tile_bytes"]
    live = sum(each["always_live"] + each["live_now"] for each in found["layers"])
    assert live == kinds["always live"] + kinds["live now"]
    for text in ("always live", "exchange code", "the_h", "fullest supersteps"):
        assert text in result.stdout


def test_a_program_that_does_not_fit_is_reported_and_exits_with_3():
    result = memory("--target", SMALL)
    assert result.exit_code == 3, result.output
    assert "always live" in result.stdout
    assert "--advise tries changes that free memory" in result.stderr
    found = written("--target", SMALL)
    assert not found["fits"]
    assert (
        not CliRunner()
        .invoke(app, ["compile", "net.onnx", "-o", "n.abele", "--target", SMALL])
        .exit_code
        == 0
    )


def test_advice_is_tried_and_holds_when_it_is_followed():
    found = written("--target", SMALL, "--advise")
    trials = {each["change"]: each for each in found["trials"]}
    better = next(t for c, t in trials.items() if c.startswith("--target") and t["fits"])
    name = better["change"].split()[1]
    assert written("--target", name)["fits"]
    narrow = trials[NARROWER]
    assert narrow["fits"]
    assert narrow["cycles"] > 0
    followed = written("--target", SMALL, *NARROWER.split())
    own = sum(followed["categories"][each] for each in ("always live", "live now", "gaps"))
    assert followed["fits"]
    assert own + followed["reserved"] == narrow["bytes"]
    assert followed["cycles"] == narrow["cycles"]


def narrower(*arguments: str) -> list[dict]:
    """The trials that advise narrower floats."""
    trials = written("--advise", *arguments)["trials"]
    return [each for each in trials if NARROWER in each["change"]]


def test_narrower_floats_come_before_the_users_own_pipeline():
    own = "decompose,fuse-chains,partition,tile,exchange"
    (narrow,) = narrower("--target", SMALL, "-p", own)
    assert narrow["change"] == NARROWER
    followed = written("--target", SMALL, "-p", own, *NARROWER.split())
    assert followed["cycles"] == narrow["cycles"]


def test_narrower_floats_that_cannot_fit_are_ruled_out_by_a_bound():
    (narrow,) = narrower("--target", TIGHT)
    assert narrow["change"] == f"{NARROWER}: what always lives alone"
    assert narrow["cycles"] is None
    # Half of the weights, on four tiles.
    assert narrow["bytes"] == (256 * 64 + 64 * 32) * 2 // 4 + 4000
    assert not narrow["fits"]


def test_narrower_floats_are_not_advised_if_all_are_narrow():
    assert not narrower("--target", SMALL, "-p", NARROW)
    Path("integers.mlir").write_text(
        """func.func @main(%x: tensor<4096xi32>) -> tensor<4096xi32> {
          %0 = nn.add %x, %x : (tensor<4096xi32>, tensor<4096xi32>) -> tensor<4096xi32>
          func.return %0 : tensor<4096xi32>
        }"""
    )
    options = ("--target", "tiny:4", "--advise", "--json", "out.json")
    result = CliRunner().invoke(app, ["memory", "integers.mlir", *options])
    assert result.exit_code == 0, result.output
    assert NARROWER not in result.output


def test_chips_that_hold_it_are_compiled_and_hold_it_when_advice_is_followed():
    found = written("--target", TIGHT, "--advise")
    assert found["all_always_live"] > 2 * 4 * 8_000
    chips = [each for each in found["trials"] if "--chips" in each["change"]]
    assert chips[-1]["fits"]
    assert not any(each["fits"] for each in chips[:-1])
    followed = written("--target", TIGHT, *chips[-1]["change"].split())
    assert followed["fits"]
    assert followed["cycles"] == chips[-1]["cycles"]
    own = sum(followed["categories"][each] for each in ("always live", "live now", "gaps"))
    assert own + followed["reserved"] == chips[-1]["bytes"]


def test_more_chips_of_several_are_advised_as_a_target():
    found = written("--target", TIGHT, "--chips", "2", "--advise")
    chips = [each for each in found["trials"] if "links.chips=" in each["change"]]
    assert chips[-1]["fits"]
    assert "links.chips=4" in chips[0]["change"]
    assert written(*chips[-1]["change"].split())["fits"]


def test_chips_are_not_tried_if_something_else_fits():
    found = written("--target", SMALL, "--advise")
    assert any(each["fits"] and each["change"] == NARROWER for each in found["trials"])
    assert not [each for each in found["trials"] if "chips" in each["change"]]


def test_no_proportion_is_tried_where_the_always_live_variables_are_too_large():
    changes = [each["change"] for each in written("--target", SMALL, "--advise")["trials"]]
    assert not any(each.startswith("--memory-proportion") for each in changes)
    bound = next(each for each in changes if each.startswith("any memory proportion"))
    assert bound == "any memory proportion: what always lives alone"
    enough = "tiny:4,memory.bytes_per_tile=24000,memory.reserved_bytes=4000"
    changes = [each["change"] for each in written("--target", enough, "--advise")["trials"]]
    assert any(each.startswith("--memory-proportion") for each in changes)


def test_code_larger_than_the_reserved_bytes_is_reported():
    result = memory("--target", "tiny:4,memory.reserved_bytes=2000")
    assert "warning: code, vertex state, exchange code and stacks take" in result.stderr
    needed = result.stderr.split("memory.reserved_bytes=")[1].split()[0]
    again = memory("--target", f"tiny:4,memory.reserved_bytes={int(needed) + 500}")
    assert again.exit_code == 0
    assert "warning" not in again.stderr


def test_finer_vertices_have_more_state():
    coarse, fine = (
        written("--target", "tiny:4"),
        written(
            "--target", "tiny:4", "--vertices-per-tile", "64", "-p", "nn,partition,tile,exchange"
        ),
    )
    assert fine["categories"]["vertex state"] >= coarse["categories"]["vertex state"]


def test_a_compiled_program_is_reported_but_not_advised_on():
    done = CliRunner().invoke(app, ["compile", "net.onnx", "-o", "n.abele", "--target", "tiny:4"])
    assert done.exit_code == 0, done.output
    own = CliRunner().invoke(app, ["memory", "n.abele"])
    assert own.exit_code == 0, own.output
    refused = CliRunner().invoke(app, ["memory", "n.abele", "--advise"])
    assert refused.exit_code == 2
    assert "--advise needs the model" in refused.stderr


def test_a_network_far_too_large_is_refused_soon_and_in_little_memory(tmp_path: Path):
    names = [f"h{i}" for i in range(6)]
    nodes = [
        node("Conv", f"{a} w{i}", b, pads=[1, 1, 1, 1])
        for i, (a, b) in enumerate(zip(["x", *names], [*names, "y"], strict=False))
    ]
    weights = {f"w{i}": random((64, 3 if i == 0 else 64, 3, 3), i) for i in range(len(nodes))}
    onnx.save(model(nodes, {"x": [64, 3, 224, 224]}, [nodes[-1].output[0]], weights), "large.onnx")
    done = subprocess.run(
        [sys.executable, "-c", TELLS_AT_ITS_END, "memory", "large.onnx"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.returncode == 3, done.stderr
    assert "does not fit: tile" in done.stderr
    used = json.loads(done.stdout.splitlines()[-1])
    assert used["peak_bytes"] < 1e9
    # Several times what it takes on a slow machine.
    assert used["seconds"] < 60


MASKED = """
builtin.module {
  func.func @main(%x: T, %rows: tensor<64x1xf32>, %columns: tensor<1x128xf32>, %w: W, %v: W, %u: W)
      -> T {
    %mask = nn.mul %rows, %columns : (tensor<64x1xf32>, tensor<1x128xf32>) -> T loc("mask")
    %0 = nn.mul %x, %mask : (T, T) -> T loc("drop1")
    %1 = nn.matmul %0, %w : (T, W) -> T loc("fc1")
    %2 = nn.matmul %1, %v : (T, W) -> T loc("fc2")
    %3 = nn.matmul %2, %u : (T, W) -> T loc("fc3")
    %4 = nn.mul %3, %mask : (T, T) -> T loc("drop2")
    func.return %4 : T
  }
}
""".replace("W", "tensor<128x128xf32>").replace("T", "tensor<64x128xf32>")
"""A mask that waits through three products."""


@pytest.mark.parametrize(
    ("text", "target"),
    [
        large(MASKED, "tiny:4,memory.bytes_per_tile=98000", id="a mask"),
        large(training_step(5, 8, 16), "tiny:8,memory.bytes_per_tile=30000", id="a training step"),
    ],
)
def test_a_program_that_does_not_fit_fits_with_recomputation(text: str, target: str):
    Path("net.mlir").write_text(text)
    arguments = ("net.mlir", "--target", target)
    told = CliRunner().invoke(app, ["memory", *arguments, "--advise", "--json", "out.json"])
    assert told.exit_code == 3, told.output
    tried = [
        each
        for each in json.loads(Path("out.json").read_text())["trials"]
        if each["change"] == "--recompute auto"
    ]
    assert tried[-1]["fits"]
    assert tried[-1]["change"] in told.stdout
    refused = CliRunner().invoke(app, ["run", *arguments])
    assert refused.exit_code == 3
    followed = CliRunner().invoke(
        app, ["run", *arguments, *split(tried[-1]["change"]), "--check", "--profile", "p.json"]
    )
    assert followed.exit_code == 0, followed.output
    profile = json.loads(Path("p.json").read_text())
    assert profile["max_tile_bytes"] == tried[-1]["bytes"]
    assert profile["cycles"] == tried[-1]["cycles"]


def test_a_missed_bound_of_recomputation_is_an_error_below_the_map():
    result = memory("--target", "tiny:4", "--recompute", "auto:5000", "--json", "out.json")
    assert result.exit_code == 2
    found = json.loads(Path("out.json").read_text())
    variables = sum(found["categories"][each] for each in ("always live", "live now", "gaps"))
    least = variables + found["reserved"]
    assert f"auto:5000: the fullest tile takes at least {least:,} bytes" in result.stderr
    assert memory("--target", "tiny:4", "--recompute", "auto:600000").exit_code == 0


@pytest.mark.large
def test_one_line_says_that_nothing_can_be_recomputed():
    line = "computing values again would free no memory on the fullest tile"
    enough = "tiny:4,memory.bytes_per_tile=24000,memory.reserved_bytes=4000"
    assert line in memory("--target", enough, "--advise").stdout
    own = ("-p", "decompose,fuse-chains,partition,tile,exchange")
    assert line not in memory("--target", enough, "--advise", *own).stdout
    too_small = memory("--target", SMALL, "--advise").stdout
    assert line not in too_small
    assert "recompute" not in too_small
    assert line not in memory("--target", enough).stdout


def test_a_step_of_training_is_shown_by_phase():
    given = ["memory", "net.onnx", "--target", "tiny:8", "--train", "--loss", "mean_square"]
    result = CliRunner().invoke(app, [*given, "--json", "map.json"])
    assert result.exit_code == 0, result.output
    assert "phases of the step" in result.stdout
    found = json.loads(Path("map.json").read_text())
    phases = {each["phase"]: each for each in found["phases"]}
    assert list(phases) == ["forward", "backward", "update"]
    steps = {name: (size, tile) for name, size, tile in found["steps"]}
    for each in phases.values():
        assert steps[each["step"]] == (each["bytes"], each["tile"])
    assert max(each["bytes"] for each in phases.values()) == max(size for size, _ in steps.values())
    for key, category in (("always_live", "always live"), ("live_now", "live now")):
        assert sum(each[key] for each in phases.values()) == found["categories"][category]


def test_memory_over_time_is_written_with_and_without_recomputation():
    Path("net.mlir").write_text(MASKED)
    bound = 98_000
    options = ("--recompute", "auto", "--over-time", "m.csv", "--target")
    target = f"tiny:4,memory.bytes_per_tile={bound}"
    result = CliRunner().invoke(app, ["memory", "net.mlir", *options, target])
    assert result.exit_code == 0, result.output
    with Path("m.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    peaks = {
        how: max(int(row["bytes"]) for row in rows if row["recompute"] == how)
        for how in ("", "auto")
    }
    assert peaks["auto"] <= bound < peaks[""]
    assert [row["effects"] for row in rows if row["effects"]] == ["computed again: mask"]
    wrong = CliRunner().invoke(app, ["memory", "net.mlir", "--over-time", "m.txt"])
    assert wrong.exit_code == 2
    assert "m.txt: unknown kind of curve; need .csv or .png" in wrong.stderr
