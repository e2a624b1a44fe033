"""A session picks a program by the shapes of its inputs, and charges what a change moves."""

from dataclasses import replace

import numpy as np
import pytest
from some_models import model, node, random

from abele.backends.residents import Switch
from abele.ir.errors import InputError
from abele.tools import Executable, Session, Training, compile_model
from abele.tools.driver.session import megabytes

TARGET = "tiny:8"
TRAINING = Training(loss="mean_square", optimizer="sgd", learning_rate=0.1)


def dense(batch: int | str = "N"):
    """y = tanh(x w), for any number of samples."""
    nodes = [node("MatMul", "x w", "h"), node("Tanh", "h", "y")]
    return model(nodes, {"x": [batch, 6]}, ["y"], {"w": random((6, 4))})


def compiled(batch: int, **options: object) -> Executable:
    return compile_model(dense(), TARGET, batch=batch, **options)


def ones(batch: int) -> dict[str, np.ndarray]:
    return {"x": np.ones((batch, 6), np.float32)}


@pytest.fixture(scope="module")
def batches() -> dict[str, Executable]:
    return {"one": compiled(1), "four": compiled(4)}


@pytest.fixture(scope="module")
def learning() -> dict[str, Executable]:
    judge = Training(update=False, outputs=True, reduction="none", loss="mean_square")
    return {"train": compiled(4, train=TRAINING), "judge": compiled(2, train=judge)}


def samples(batch: int) -> dict[str, np.ndarray]:
    return ones(batch) | {"target": np.zeros((batch, 4), np.float32)}


def test_the_shapes_of_inputs_pick_the_program(batches: dict[str, Executable]):
    session = Session(batches)
    for batch, name in ((1, "one"), (4, "four"), (1, "one")):
        found = session.run(ones(batch))["y"]
        assert session.current == name
        np.testing.assert_array_equal(found, batches[name].run(ones(batch))["y"])
    assert [(each.before, each.after) for each in session.history] == [
        ("", "one"),
        ("one", "four"),
        ("four", "one"),
    ]


def test_inputs_that_no_program_takes_are_refused(batches: dict[str, Executable]):
    session = Session(batches)
    with pytest.raises(InputError, match=r"no program takes inputs 'x' \[3, 6\]; there are one: "):
        session.run(ones(3))
    with pytest.raises(InputError, match="input 'x': not an array"):
        session.run({"x": [[1.0, 2.0], [3.0]]})
    with pytest.raises(InputError, match="no program 'two'; there are one, four"):
        session.run(ones(1), "two")
    assert session.current == ""
    assert session.cycles == 0


def test_programs_hold_equal_weights_once():
    programs = {"one": compiled(1, cache=False), "four": compiled(4, cache=False)}

    def weight(exe: Executable) -> np.ndarray:
        ops = exe.module_at("exchange").body.block.ops
        return next(v.initial.data.array for v in ops if getattr(v, "symbol", "") == "w")

    assert weight(programs["one"]) is not weight(programs["four"])
    Session(programs)
    assert weight(programs["one"]) is weight(programs["four"])


def test_inputs_that_several_programs_take_need_a_name():
    session = Session({"a": compiled(1), "b": compiled(1)})
    with pytest.raises(InputError, match="a, b all take these inputs; name one of them"):
        session.run(ones(1))
    session.run(ones(1), "b")
    assert session.current == "b"


def test_equal_programs_move_no_weights_but_their_code():
    session = Session({"a": compiled(1), "b": compiled(1)})
    session.run(ones(1), "a")
    session.run(ones(1), "b")
    change = session.history[-1]
    assert change.in_bytes == change.out_bytes == 0
    assert change.stay_bytes == 6 * 4 * 4
    assert change.code_bytes > 0
    assert change.cycles == -(-change.code_bytes // session.target.host.bytes_per_cycle)


def test_a_run_of_the_same_program_moves_nothing(batches: dict[str, Executable]):
    session = Session(batches)
    session.run(ones(1))
    before = session.cycles
    session.run(ones(1))
    profile = batches["one"].profile
    assert session.cycles - before == profile["cycles"] + profile["host_cycles"]
    assert len(session.history) == 1


def test_weights_elsewhere_come_from_the_host(batches: dict[str, Executable]):
    for change in Session(batches).costs():
        assert change.stay_bytes + change.in_bytes == 6 * 4 * 4
        assert change.out_bytes == 0
        moved = change.in_bytes + change.code_bytes
        assert change.cycles == -(-moved // batches["one"].target.host.bytes_per_cycle)


def test_what_one_program_trains_the_other_computes_with(learning: dict[str, Executable]):
    session = Session(learning)
    before = session.run(samples(2))["loss"]
    for _ in range(5):
        session.run(samples(4))
    after = session.run(samples(2))["loss"]
    assert (after < before).all()
    judge = Training(update=False, outputs=True, reduction="none", loss="mean_square")
    alone = compiled(2, train=judge)
    alone.set_states({"w": learning["train"].states["w"]})
    np.testing.assert_array_equal(after, alone.run(samples(2))["loss"])


def test_what_was_trained_before_is_computed_with(learning: dict[str, Executable]):
    for exe in learning.values():
        exe.reset()
    before = Session(learning).run(samples(2))["loss"]
    learning["train"].step(samples(4))
    after = Session(learning).run(samples(2))["loss"]
    assert (after < before).all()


def test_programs_that_trained_apart_are_refused():
    programs = {name: compiled(4, train=TRAINING) for name in ("a", "b")}
    for exe in programs.values():
        exe.step(samples(4))
    session = Session(programs)  # the same step of the same weights
    session.run(samples(4), "b")
    with pytest.raises(InputError, match=r"a and b have both trained state 'w'.*call reset\(\)"):
        Session(programs)
    weights = programs["b"].states["w"]
    programs["a"].reset()
    Session(programs).run(samples(4), "a")
    alone = compiled(4, train=TRAINING)
    alone.set_states({"w": weights})
    alone.step(samples(4))
    np.testing.assert_array_equal(programs["a"].states["w"], alone.states["w"])


def test_a_strict_step_goes_on_from_the_last_one(learning: dict[str, Executable]):
    losses: list[np.ndarray] = []
    for modes in ((False, False, False), (False, True, False)):
        for exe in learning.values():
            exe.reset()
        session = Session(learning)
        losses.append([session.run(samples(4), strict=each)["loss"] for each in modes][-1])
    np.testing.assert_array_equal(*losses)


def test_trained_weights_are_saved_once_before_they_are_lost(learning: dict[str, Executable]):
    session = Session(learning)
    for batch in (4, 2, 2, 4, 2):
        session.run(samples(batch))
    outs = [each.out_bytes for each in session.history]
    size = 6 * 4 * 4
    # Loading the first program saves nothing, and neither does leaving one that changes nothing.
    assert outs[0] == outs[2] == 0
    assert set(outs[1::2]) <= {0, size}
    stay = [each.stay_bytes for each in session.history]
    assert [out == 0 for out in outs[1::2]] == [each == size for each in stay[1::2]]


def test_programs_that_do_not_belong_together_are_refused(batches: dict[str, Executable]):
    with pytest.raises(InputError, match="other is for tiny:7; need tiny:8"):
        Session(batches | {"other": compile_model(dense(), "tiny:7", batch=1)})
    with pytest.raises(InputError, match="no model for 'one'; give one for all, or its own"):
        Session.compiled(None, {"one": {"batch": 1}}, TARGET)
    with pytest.raises(InputError, match="need at least one"):
        Session({})
    train = compiled(4, train=TRAINING)
    other = dense()
    other.graph.initializer[0].raw_data = random((6, 4), 5).tobytes()
    judge = compile_model(other, TARGET, batch=2, train=Training(update=False, loss="mean_square"))
    with pytest.raises(InputError, match="state 'w' differs between train and other"):
        Session({"train": train, "other": judge})


def test_a_program_that_has_folded_its_weights_does_not_see_them_trained():
    nodes = [node("Transpose", "v", "w"), node("MatMul", "x w", "y")]
    folds = model(nodes, {"x": ["N", 6]}, ["y"], {"v": random((4, 6))})
    train = compile_model(folds, TARGET, batch=4, train=TRAINING)
    plain = compile_model(folds, TARGET, batch=1)
    with pytest.raises(InputError, match="train trains 'v', which plain does not have as a state"):
        Session({"train": train, "plain": plain})


def test_a_plain_program_computes_with_trained_weights(batches: dict[str, Executable]):
    session = Session({"train": compiled(2, train=TRAINING), "one": batches["one"]})
    before = session.run(ones(1))["y"]
    session.run(samples(2))
    assert (session.run(ones(1))["y"] != before).any()
    batches["one"].reset()


def test_the_costs_are_a_table(batches: dict[str, Executable]):
    pytest.importorskip("pandas")
    table = Session(batches).frame()
    assert list(table["before"]) == ["one", "four"]
    assert list(table["seconds"] * batches["one"].target.clock_hz) == list(table["cycles"])
    assert isinstance(Session(batches).costs()[0], Switch)
    assert repr(Session(batches)) == "<Session of one, four for tiny:8>"


def test_programs_that_are_compiled_together_keep_weights_and_say_what_that_costs():
    options = {"one": {"batch": 1}, "four": {"batch": 4}}
    session = Session.compiled(dense(), options, TARGET, runs=1e-6, compare=True)
    assert {each.stay_bytes for each in session.costs()} == {6 * 4 * 4}
    assert {(each.stay, each.moved) for each in session.costs()} == {(1, 0)}
    one, four = session.program_rows()
    alone = compiled(4).profile["cycles"]
    cycles = session.programs["four"].profile["cycles"]
    assert one[1] == one[2]
    assert one[3] == "+0.0 %"
    assert four[:3] == ("four", f"{cycles:,}", f"{alone:,}")
    assert four[3] == f"{(cycles / alone - 1) * 100:+.1f} %"
    programs, changes = session.summary().split("\n\n")
    assert [line.split()[0] for line in programs.splitlines()] == ["program", "one", "four"]
    assert changes.splitlines()[1].split()[:5] == ["one", "->", "four", "1", "0"]
    assert len({len(line) for line in changes.splitlines()}) == 1


def test_what_programs_cost_alone_may_be_unknown(batches: dict[str, Executable]):
    assert [row[2:4] for row in Session(batches).program_rows()] == [("?", "?")] * 2
    told = Session(batches, {"four": batches["four"].profile["cycles"]})
    assert [row[3] for row in told.program_rows()] == ["?", "+0.0 %"]


def test_each_program_may_have_options_and_a_model_of_its_own():
    judge = Training(update=False, outputs=True, reduction="none", loss="mean_square")
    options = {
        "train": {"batch": 4, "train": TRAINING},
        "judge": {"batch": 2, "train": judge, "model": dense(2)},
    }
    session = Session.compiled(dense(), options, TARGET)
    assert session.pick(samples(2)) == "judge"
    assert session.alone == {"train": session.programs["train"].profile["cycles"]}


def test_each_weight_says_whether_it_stays(learning: dict[str, Executable]):
    options = {"one": {"batch": 1}, "four": {"batch": 4}}
    kept = Session.compiled(dense(), options, TARGET, runs=1e-6)
    assert kept.weight_rows() == [("w", "96", "first", "stays")]
    assert kept.weights().split() == ["weight", "bytes", *options, "w", "96", "first", "stays"]
    apart = Session({"one": compiled(1), "four": compiled(8)}).weight_rows()
    assert apart[0][3] in ("layout", "address")
    adam = compiled(4, train=replace(TRAINING, optimizer="adam"))
    rows = Session({"train": adam, "judge": learning["judge"]}).weight_rows()
    shared = [row for row in rows if row[0] == "w"]
    assert [row[1:3] for row in shared] == [("96", "first")]
    # Only training counts its steps, and keeps what its optimiser needs.
    own = [row for row in rows if row[0] != "w"]
    assert {row[0] for row in own} >= {"w.mean", "w.square"}
    assert all(row[3] == "-" for row in own)


def test_tables_tell_small_sizes_from_nothing(batches: dict[str, Executable]):
    session = Session(batches)
    # A program of 6 x 4 weights has 96 bytes of them, and some KB of code.
    assert {row[-1] for row in session.program_rows()} == {"0.000"}
    assert all(0 < float(row[6]) < 0.1 for row in session.change_rows())
    sizes = {0: "0.0", 640: "0.001", 999_000: "0.999", 1_000_000: "1.0", 98_512_345: "98.5"}
    assert {size: megabytes(size) for size in sizes} == sizes
