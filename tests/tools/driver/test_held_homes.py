"""Programs that are compiled beside others compute the same, and find their weights in place."""

from math import inf
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from some_models import model, node

from abele.backends.residents import footprint
from abele.dialects.home import MOST
from abele.ir.errors import DoesNotFit, InputError
from abele.tools import Executable, Session, Training, compile_model
from abele.tools.driver import compile_anew
from abele.tools.driver.executable import MACHINE
from abele.tools.driver.held_homes import held_by
from abele.tools.driver.request import Request

TARGET = "tiny:8"


def integers(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Small whole numbers, whose sums float32 holds exactly in any order."""
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float32)


@st.composite
def networks(draw: st.DrawFn) -> onnx.ModelProto:
    """A network for any number of samples, whose results are whole numbers."""
    nodes: list[onnx.NodeProto] = []
    weights: dict[str, np.ndarray] = {}
    sizes = st.integers(1, 24)
    image = draw(st.booleans())
    width, last = draw(sizes), "x"
    shape: list[int | str] = ["N", width, 5, 4] if image else ["N", width]
    for i in range(draw(st.integers(1, 4))):
        out, name = draw(sizes), f"h{i}"
        kind = draw(st.sampled_from(["product", "product", "Relu", "bias"]))
        if kind == "product":
            window = (draw(st.sampled_from([1, 3])),) * 2 if image else ()
            weights[f"w{i}"] = integers((out, width, *window) if image else (width, out), i)
            more = {"auto_pad": "SAME_UPPER"} if image else {}
            nodes.append(node("Conv" if image else "MatMul", f"{last} w{i}", name, **more))
            width = out
        elif kind == "bias":
            weights[f"w{i}"] = integers((width, 1, 1) if image else (width,), i)
            nodes.append(node("Add", f"{last} w{i}", name))
        else:
            nodes.append(node("Relu", last, name))
        last = name
    return model(nodes, {"x": shape}, [last], weights)


def inputs_of(exe: Executable, seed: int) -> dict[str, np.ndarray]:
    return {each.name: integers(each.shape, seed) for each in exe.inputs}


@settings(max_examples=6, deadline=None)
@given(
    networks(), st.permutations([1, 2, 3, 7]), st.sampled_from([1e-6, 1, 100]), st.integers(0, 99)
)
def test_programs_beside_each_other_compute_what_they_compute_alone(
    network: onnx.ModelProto, batches: list[int], runs: float, seed: int
):
    options = {str(n): {"batch": n} for n in batches[: 2 + seed % 2]}
    session = Session.compiled(network, options, TARGET, runs=runs, cache=False)
    held = held_by([session.programs[str(batches[0])]], session.target, runs)
    for name in (*options, *map(str, batches[:2])):
        exe = session.programs[name]
        alone = compile_model(network, TARGET, batch=int(name), cache=False)
        given = inputs_of(exe, seed)
        found, expected = session.run(given, strict=True), alone.run(given)
        for output, value in expected.items():
            np.testing.assert_array_equal(found[output], value)
    second = footprint(session.programs[str(batches[1])].module_at(MACHINE), session.target)
    first = footprint(session.programs[str(batches[0])].module_at(MACHINE), session.target)
    same = {r.place for r in first.residents} & {r.place for r in second.residents}
    stay = sum(r.place in same for r in second.residents)
    assert session.history[-1].stay >= stay
    if runs < 1:
        # Loading a weight even once takes longer than any plan for it.
        weights = [r for r in second.residents if r.value in held]
        assert {r.value for r in weights if r.place in same} == {r.value for r in weights}


def dense() -> onnx.ModelProto:
    nodes = [node("MatMul", "x w", "h"), node("Tanh", "h", "t"), node("MatMul", "t v", "y")]
    return model(
        nodes, {"x": ["N", 24]}, ["y"], {"w": integers((24, 16), 0), "v": integers((16, 40), 1)}
    )


def test_weights_stay_after_steps_of_training():
    train = Training(loss="mean_square", optimizer="sgd", learning_rate=0.01)
    judge = Training(update=False, outputs=True, reduction="none", loss="mean_square")
    programs = {"train": {"batch": 8, "train": train}, "judge": {"batch": 2, "train": judge}}
    session = Session.compiled(dense(), programs, TARGET, runs=1e-6, cache=False)
    samples = {n: {"x": integers((n, 24), 5), "target": integers((n, 40), 6)} for n in (8, 2)}
    for _ in range(3):
        session.run(samples[8])
    found = session.run(samples[2])
    change = session.history[-1]
    assert (change.before, change.after) == ("train", "judge")
    assert change.stay_bytes == (24 * 16 + 16 * 40) * 4
    assert change.out_bytes == change.in_bytes == 0
    fresh = Session.compiled(dense(), programs, TARGET, runs=1e-6, cache=False).programs["judge"]
    states = session.programs["train"].states
    fresh.set_states({name: states[name] for name in ("w", "v")})
    for name, value in fresh.run(samples[2]).items():
        np.testing.assert_array_equal(found[name], value)
    # Training goes on with what stayed.
    again = session.run(samples[8])
    assert session.history[-1].stay_bytes >= change.stay_bytes
    assert np.isfinite(again["loss"]).all()


def test_nothing_is_lost_for_weights_that_are_never_loaded_again():
    options = {"1": {"batch": 1}, "7": {"batch": 7}}
    session = Session.compiled(dense(), options, TARGET, runs=inf, compare=True, cache=False)
    assert session.programs["7"].profile["cycles"] <= session.alone["7"]


def test_a_program_that_fits_alone_only_keeps_nothing(monkeypatch: pytest.MonkeyPatch):
    first = compile_model(dense(), TARGET, batch=1, beside=[], cache=False)
    compiled = compile_anew.compile_anew

    def with_little_room(request: Request) -> Executable:
        if request.beside:
            raise DoesNotFit("the program", 2, 1)
        return compiled(request)

    monkeypatch.setattr(compile_anew, "compile_anew", with_little_room)
    second = compile_model(dense(), TARGET, batch=64, beside=[first], cache=False)
    alone = compile_model(dense(), TARGET, batch=64, cache=False)
    assert second.profile["cycles"] == alone.profile["cycles"]


def test_programs_for_other_targets_and_no_runs_are_refused():
    first = compile_model(dense(), "tiny:5", batch=1, cache=False)
    with pytest.raises(InputError, match="for tiny:5; need a program for tiny:6"):
        compile_model(dense(), "tiny:6", batch=2, beside=[first])
    for runs in (0, -1, float("nan")):
        with pytest.raises(InputError, match="runs between changes of programs; need more than 0"):
            compile_model(dense(), "tiny:5", batch=2, beside=[first], runs=runs)


def test_the_target_is_that_of_the_others_unless_one_is_given():
    first = compile_model(dense(), TARGET, batch=1, beside=[], cache=False)
    assert compile_model(dense(), batch=2, beside=[first], cache=False).target == first.target


def test_what_is_laid_out_already_is_not_compiled_beside_others(tmp_path: Path):
    first = compile_model(dense(), TARGET, batch=1, beside=[], dump_ir=tmp_path / "ir")
    first.save(tmp_path / "first.abele")
    options = {"1": {"model": tmp_path / "first.abele"}, "2": {"model": dense(), "batch": 2}}
    assert Session.compiled(None, options, cache=False).target == first.target
    with pytest.raises(InputError, match="cannot be laid out beside others; need the model"):
        compile_model(tmp_path / "first.abele", beside=[first])
    (below,) = (tmp_path / "ir").glob("*convert-nn-to-partition.mlir")
    with pytest.raises(InputError, match="a program of partition, .* need one of nn"):
        compile_model(below, beside=[first])


def test_weights_stay_at_any_price_if_programs_run_hardly_ever():
    first = compile_model(dense(), TARGET, batch=1, beside=[], cache=False)
    for runs in (1e-300, 5e-324):
        for homes in held_by([first], first.target, runs).values():
            assert {home.reload for home in homes} == {MOST}
    second = compile_model(dense(), TARGET, batch=2, beside=[first], runs=1e-300, cache=False)
    places = [
        {r.value: r.place for r in footprint(exe.module_at(MACHINE), exe.target).residents}
        for exe in (first, second)
    ]
    assert places[0] == places[1]


def test_the_first_of_several_programs_says_where_weights_lie():
    first = compile_model(dense(), TARGET, batch=1, beside=[], cache=False)
    other = compile_model(dense(), TARGET, batch=64, beside=[], cache=False)
    both = held_by([first, other], first.target, 1)
    assert dict(held_by([first], first.target, 1)).items() <= both.items()
    assert set(both) == set(held_by([other], first.target, 1))
