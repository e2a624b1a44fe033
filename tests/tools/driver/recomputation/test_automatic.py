"""What the compiler chooses to compute again, under a bound of memory."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from lengths import large
from some_models import model, node, random
from training import training_step, with_phases

from abele.ir.errors import DoesNotFit, InputError
from abele.tools import Executable, Training, compile_model
from abele.tools.debug.bisect.bisect import bisect
from abele.tools.driver.compile_anew import with_chosen
from abele.tools.driver.recomputation import automatic
from abele.tools.driver.request import Request
from abele.tools.views.planning.plan import plan_model

TARGET = "tiny:8"
LAYERS = 6


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("step") / "step.mlir"
    path.write_text(training_step(LAYERS, 8, 16))
    return path


@pytest.fixture(scope="module")
def kept(step: Path) -> Executable:
    return compile_model(step, TARGET)


def test_a_program_within_the_bound_is_left_alone(step: Path, kept: Executable):
    exe = compile_model(step, TARGET, recompute="auto")
    assert exe.recomputed == ()
    assert exe.profile["cycles"] == kept.profile["cycles"]


def test_a_program_over_the_bound_is_brought_below_it(step: Path, kept: Executable):
    bound = kept.memory.max_tile_bytes - 1500
    exe = compile_model(step, TARGET, recompute=f"auto:{bound}")
    assert exe.memory.max_tile_bytes <= bound
    assert exe.recomputed
    assert all(each.bytes > 0 and each.cycles > 0 for each in exe.recomputed)
    more = exe.profile["cycles"] - kept.profile["cycles"]
    assert more <= 1.5 * sum(each.cycles for each in exe.recomputed)
    inputs = {each.name: random(each.shape, i) for i, each in enumerate(kept.inputs)}
    before, after = kept.run(inputs), exe.run(inputs)
    for name, value in before.items():
        assert after[name] == pytest.approx(value, rel=1e-4, abs=1e-4)


def test_the_cache_and_the_profile_keep_the_choices(
    step: Path, kept: Executable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ABELE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ABELE_CACHE_BYTES", "100000000")
    how = f"auto:{kept.memory.max_tile_bytes - 1501}"
    first, again = (compile_model(step, TARGET, recompute=how, cache=True) for _ in range(2))
    assert again.is_from_cache
    assert first.recomputed
    assert again.recomputed == first.recomputed
    for exe in (first, again):
        assert [each["bytes"] for each in exe.profile["recomputed"]] == [
            each.bytes for each in first.recomputed
        ]


def test_the_time_of_trials_has_a_name(step: Path, kept: Executable):
    def stages(recompute: str) -> dict[str, float]:
        return compile_model(step, TARGET, recompute=recompute, cache=False).stages.seconds

    assert "trials" not in stages("auto")
    assert stages(f"auto:{kept.memory.max_tile_bytes - 200}")["trials"] > 0


def test_a_copy_that_waits_is_given_up_before_a_value(step: Path, kept: Executable):
    # Copying weights to the layout of a reader again costs less than a convolution.
    exe = compile_model(step, TARGET, recompute=f"auto:{kept.memory.max_tile_bytes - 4000}")
    assert any(each.anew for each in exe.recomputed)
    assert not any(each.nodes for each in exe.recomputed)


def test_a_lower_bound_computes_no_less_again(step: Path, kept: Executable):
    sizes = [kept.memory.max_tile_bytes - less for less in (200, 1500)]
    few, many = (compile_model(step, TARGET, recompute=f"auto:{size}") for size in sizes)
    assert 0 < sum(e.cycles for e in few.recomputed) <= sum(e.cycles for e in many.recomputed)


def test_a_saved_program_says_what_it_computes_again(step: Path, kept: Executable, tmp_path: Path):
    exe = compile_model(step, TARGET, recompute=f"auto:{kept.memory.max_tile_bytes - 200}")
    exe.save(tmp_path / "p.abele")
    assert compile_model(tmp_path / "p.abele").recomputed == exe.recomputed


def test_a_bound_out_of_reach_names_the_least_that_can_be_reached(step: Path):
    with pytest.raises(InputError, match="auto:20000: the fullest tile takes at least") as error:
        compile_model(step, TARGET, recompute="auto:20000")
    (least,) = [int(w.replace(",", "")) for w in str(error.value).split() if w[:1].isdigit()]
    assert compile_model(step, TARGET, recompute=f"auto:{least}").memory.max_tile_bytes <= least


def test_a_target_that_is_too_small_is_refused_as_ever(tmp_path: Path):
    path = tmp_path / "step.mlir"
    path.write_text(training_step(2, 8, 16))
    with pytest.raises(DoesNotFit):
        compile_model(path, f"{TARGET},memory.bytes_per_tile=20000", recompute="auto")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("auto:", "no number"),
        ("auto:x", "'x' is no number"),
        ("a,,b", "need auto"),
        ("nothing", "no operator of that name"),
    ],
)
def test_an_option_that_means_nothing_is_refused(step: Path, text: str, message: str):
    with pytest.raises(InputError, match=message):
        compile_model(step, TARGET, recompute=text)


def test_values_wait_in_a_narrower_type_where_that_costs_less(tmp_path: Path):
    path = tmp_path / "step.mlir"
    path.write_text(with_phases(training_step(LAYERS, 8, 16), LAYERS))
    kept = compile_model(path, TARGET)
    bound = kept.memory.max_tile_bytes - 11000
    exe = compile_model(
        path, TARGET, recompute=f"auto:{bound}", stash=["f134@0.125:auto", "bfloat16:auto"]
    )
    assert exe.memory.max_tile_bytes <= bound
    chosen = [each for each in exe.recomputed if each.narrow]
    assert chosen
    assert all(" as bfloat16: " in str(each) or " as f134@0.125: " in str(each) for each in chosen)
    # What is estimated is what the program pays.
    more = exe.profile["cycles"] - kept.profile["cycles"]
    assert 0.5 * more <= sum(each.cycles for each in exe.recomputed) <= 2 * more
    again = compile_model(path, TARGET, recompute=f"auto:{bound}", unbounded=True)
    assert not any(each.narrow for each in again.recomputed)
    assert again.memory.max_tile_bytes > bound or again.profile["cycles"] > exe.profile["cycles"]
    exe.save(tmp_path / "p.abele")
    assert compile_model(tmp_path / "p.abele").recomputed == exe.recomputed


@pytest.mark.parametrize("recompute", ["", "sqrt", "conv1"])
def test_stashes_are_chosen_only_where_recomputation_is(step: Path, recompute: str):
    message = "--stash f134@0.5:auto without --recompute auto, which chooses; need both"
    with pytest.raises(InputError, match=message):
        compile_model(step, TARGET, recompute=recompute, stash=["f134@0.5:auto"])


WIDTH, BATCH = 16, 64


def whole(shape: tuple[int, int], seed: int, share: float = 1.0) -> np.ndarray:
    """Ones of both signs, and zeros. All sums of their products are exact."""
    rng = np.random.default_rng(seed)
    values = rng.choice([-1.0, 1.0], shape) * (rng.random(shape) < share)
    return values.astype(np.float32)


def network() -> onnx.ModelProto:
    """Layers with dropout, whose masks wait for the backward pass.

    The product with 1.1 is what float16 must round.
    """
    nodes = [
        node("Gemm", "x w0", "a0", transB=1),
        *(
            each
            for i in range(3)
            for each in (
                node("Mul", f"a{i} rate", f"m{i}"),
                node("Relu", f"m{i}", f"r{i}"),
                node("Dropout", f"r{i} ratio", f"d{i}"),
                node("Gemm", f"d{i} w{i + 1}", f"a{i + 1}", transB=1),
            )
        ),
    ]
    weights = {f"w{i}": whole((WIDTH, WIDTH), i, share=0.15) for i in range(4)}
    weights["ratio"], weights["rate"] = np.array(0.5, np.float32), np.array(1.1, np.float32)
    return model(nodes, {"x": [BATCH, WIDTH]}, ["a3"], weights)


STOCHASTIC = {"precision": "pure-float16", "rounding": "stochastic"}


@pytest.mark.parametrize(
    ("how", "options"),
    [
        ("auto", STOCHASTIC),
        ("*", {}),
        *(large(*each) for each in (("auto", {}), ("*", STOCHASTIC), ("sqrt", {}))),
        large("sqrt", STOCHASTIC),
    ],
)
def test_what_is_computed_again_drops_and_rounds_the_same_elements_to_the_bit(how, options):
    train = Training(loss="mean_square", learning_rate=2.0**-9, freeze=("rate",))
    inputs = {name: whole((BATCH, WIDTH), i) for i, name in enumerate(("x", "target"))}
    given = network()
    kept = compile_model(given, "tiny:4", train=train, **options)
    bound = f"auto:{kept.memory.max_tile_bytes - 1000}" if how == "auto" else how
    again = compile_model(given, "tiny:4", train=train, recompute=bound, **options)
    # The copies show that something is computed again.
    assert again.profile["ops"]["partition"] > kept.profile["ops"]["partition"]
    for _ in range(2):
        first, second = kept.step(inputs), again.step(inputs)
        # Squares of rounded numbers have too many digits for an exact sum.
        assert second["loss"] == pytest.approx(first["loss"], rel=1e-6)
        for name, state in kept.states.items():
            assert again.states[name].tobytes() == state.tobytes()


def deep() -> onnx.ModelProto:
    """Layers with dropout that the published schedule makes smaller."""
    nodes = [node("Gemm", "x w0", "a0", transB=1)]
    for i in range(4):
        nodes.append(node("Relu", f"a{i}", f"r{i}"))
        nodes.append(node("Dropout", f"r{i} ratio", f"d{i}"))
        nodes.append(node("Gemm", f"d{i} w{i + 1}", f"a{i + 1}", transB=1))
    weights = {f"w{i}": random((24, 24), i, 0.2) for i in range(5)}
    weights["ratio"] = np.array(0.25, np.float32)
    return model(nodes, {"x": [64, 24]}, ["a4"], weights)


@pytest.mark.parametrize("rounds", [automatic.ROUNDS, 0])
def test_the_compiler_does_no_worse_than_the_published_schedule(
    rounds: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(automatic, "ROUNDS", rounds)
    train = Training(loss="mean_square", learning_rate=0.1)

    def compiled(recompute: str) -> Executable:
        return compile_model(deep(), "tiny:4", train=train, recompute=recompute, cache=False)

    published = compiled("sqrt")
    bound = published.memory.max_tile_bytes
    assert bound < compiled("").memory.max_tile_bytes
    own = compiled(f"auto:{bound}")
    assert own.memory.max_tile_bytes <= bound
    assert own.profile["cycles"] <= published.profile["cycles"]
    assert own.recomputed
    # Without own choices, the schedule itself is taken.
    assert (own.profile["cycles"] == published.profile["cycles"]) == (rounds == 0)


MASKED = """
!x = tensor<256x128xf32>
!w = tensor<128x128xf32>
func.func @main(%x: !x, %rows: tensor<256x1xf32>, %columns: tensor<1x128xf32>,
                %w: !w, %v: !w, %u: !w) -> !x {
  %mask = nn.mul %rows, %columns : (tensor<256x1xf32>, tensor<1x128xf32>) -> !x loc("mask")
  %0 = nn.mul %x, %mask : (!x, !x) -> !x loc("drop1")
  %1 = nn.matmul %0, %w : (!x, !w) -> !x loc("fc1")
  %2 = nn.matmul %1, %v : (!x, !w) -> !x loc("fc2")
  %3 = nn.matmul %2, %u : (!x, !w) -> !x loc("fc3")
  %4 = nn.mul %3, %mask : (!x, !x) -> !x loc("drop2")
  func.return %4 : !x
}"""


@pytest.mark.large
def test_plans_and_bisection_are_those_of_the_program_with_the_choice(tmp_path: Path):
    (tmp_path / "m.mlir").write_text(MASKED)
    target = "tiny:16,memory.bytes_per_tile=56000"
    request = Request(tmp_path / "m.mlir", target, recompute="auto")
    exe = compile_model(request.model, target, recompute="auto", cache=False)
    assert [each.nodes for each in exe.recomputed] == [("mask",)]
    plain, again = (
        [row.node for row in plan_model(replace(each, passes="nn")).plan.operators]
        for each in (replace(request, recompute=""), request)
    )
    assert plain.index("mask") < plain.index("fc2")
    assert again.index("mask") > again.index("fc2")
    assert bisect(request).passed
    assert with_chosen(request.settled()).passes.startswith('nn,recompute{nodes="mask"}')
    roomy = replace(request, target="tiny:16")
    assert with_chosen(roomy.settled()).passes == ""
