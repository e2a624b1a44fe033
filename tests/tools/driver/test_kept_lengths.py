"""Values whose size has bounds, kept on the device from run to run and from program to program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser

from abele.backends.faults import IndexFault
from abele.dialects import nn
from abele.dialects.host import KeptSize, kept_sizes, set_kept_sizes
from abele.ir.errors import InputError
from abele.ir.upstream import ModuleOp
from abele.tools import Executable, Session, compile_model
from abele.tools.driver.program import signature
from abele.tools.driver.session import fitted

KEEP = {"cache": "present"}
TARGET = "tiny:4"


def step(more: str = "") -> ModelProto:
    """Add rows to a cache, and sum it up; with 1, so that an empty sum differs from no run."""
    return parser.parse_model(f"""
<ir_version: 10, opset_import: ["" : 21]>
step (float[past, 2] cache, float[new, 2] rows) => (float[n, 2] present, float[2] sum {more}) {{
    present = Concat <axis = 0> (cache, rows)
    axes = Constant <value_ints = [0]> ()
    one = Constant <value_float = 1.0> ()
    total = ReduceSum <keepdims = 0> (present, axes)
    sum = Add (total, one)
}}""")


def rows(first: int, count: int = 1) -> dict[str, Any]:
    return {"rows": np.arange(2 * first, 2 * (first + count), dtype=np.float32).reshape(-1, 2)}


def summed(cache: np.ndarray) -> np.ndarray:
    return cache.sum(0, dtype=np.float32) + 1


@pytest.fixture(scope="module")
def kept() -> Executable:
    return compile_model(step(), TARGET, dims={"past": (0, 4), "new": (1, 2)}, keep=KEEP)


@pytest.fixture(scope="module")
def bounds() -> dict[str, Executable]:
    found: list[Executable] = []
    for low, most in ((0, 2), (0, 5), (6, 9)):
        dims = {"past": (low, most), "new": (1, 2)}
        found.append(compile_model(step(), TARGET, dims=dims, keep=KEEP, beside=found))
    return dict(zip(("small", "middle", "large"), found, strict=True))


def test_a_row_that_is_joined_to_a_kept_value_is_written_into_its_state(kept: Executable):
    ops = [*kept.module_at("nn").walk()]
    (update,) = (op for op in ops if isinstance(op, nn.UpdateOp))
    assert isinstance(update.table.owner, nn.LoadOp)
    assert not any(isinstance(op, nn.PadOp) for op in ops)


def test_the_length_of_a_kept_value_follows_from_the_runs_before(kept: Executable):
    assert [each.name for each in kept.inputs] == ["rows", "past", "new"]
    assert [each.name for each in kept.outputs] == ["sum"]
    for at in kept.levels:
        cache = np.zeros((0, 2), np.float32)
        for count in (1, 2, 1, 1):
            given = rows(len(cache), count)
            cache = np.concatenate([cache, given["rows"]])
            np.testing.assert_allclose(kept.run(given, at=at)["sum"], summed(cache))
        assert kept.held(at) == {"past.held": 5}
    kept.reset()


def test_a_run_goes_on_from_any_part_of_a_kept_value(kept: Executable):
    kept.reset()
    kept.run(rows(0, 2))
    kept.run(rows(2, 2))
    cache = np.concatenate([rows(0, 2)["rows"], rows(7)["rows"]])
    np.testing.assert_allclose(kept.run(rows(7) | {"past": 2})["sum"], summed(cache))
    np.testing.assert_allclose(kept.run(rows(9) | {"past": 0})["sum"], summed(rows(9)["rows"]))
    given = rows(3) | {"past": np.int32(1)}
    cache = np.concatenate([rows(9)["rows"], rows(3)["rows"]])
    np.testing.assert_allclose(kept.run(given)["sum"], summed(cache))


def test_a_length_that_a_state_does_not_reach_or_that_passes_the_bounds_is_refused(
    kept: Executable,
):
    kept.reset()
    match = r"state 'cache' holds 0 elements along axis 0; a run cannot read 1: past is 1: the run"
    with pytest.raises(InputError, match=match):
        kept.run(rows(0) | {"past": 1})
    for _ in range(5):
        kept.run(rows(0))
    match = (
        r"state 'cache' holds 5 elements along axis 0, so that past is 5; need 0\.\.4, or compile "
        r"with wider bounds: --dim past=0\.\.5"
    )
    with pytest.raises(InputError, match=match):
        kept.run(rows(0))
    with pytest.raises(InputError, match=r"the run gives past = -1; need 0\.\.4$"):
        kept.run(rows(0) | {"past": -1})
    assert kept.held() == {"past.held": 5}


def test_an_output_that_is_smaller_than_its_input_is_kept_too():
    """The rows after the first one stay: a window that slides."""
    proto = parser.parse_model("""
<ir_version: 10, opset_import: ["" : 21]>
slide (float[past, 2] cache) => (float[n, 2] present, float[2] sum) {
    one = Constant <value_ints = [1]> ()
    zero = Constant <value_ints = [0]> ()
    end = Constant <value_ints = [99]> ()
    present = Slice (cache, one, end, zero)
    sum = ReduceSum <keepdims = 0> (cache, zero)
}""")
    exe = compile_model(proto, TARGET, dims={"past": (1, 3)}, keep=KEEP)
    (size,) = exe.signature.kept_sizes
    assert size == KeptSize("cache", 0, 0, "past.held", ("past",))
    for at in exe.levels:
        assert exe.run({}, at=at)["sum"].tolist() == [0, 0]
        assert exe.held(at) == {"past.held": 0}
        with pytest.raises(InputError, match=r"holds 0 .*so that past is 0; need 1\.\.3"):
            exe.run({}, at=at)


def test_bounds_of_an_input_alone_are_refused():
    proto = parser.parse_model("""
<ir_version: 10, opset_import: ["" : 21]>
last (float[past, 2] cache, float[3, 2] rows) => (float[3, 2] present, float[n, 2] all) {
    all = Concat <axis = 0> (cache, rows)
    present = Neg (rows)
}""")
    match = r"cache=present: along axis 0, the size of the input has bounds, and that of the output"
    with pytest.raises(InputError, match=match):
        compile_model(proto, TARGET, dims={"past": (0, 3)}, keep=KEEP)


def test_the_size_of_an_output_is_no_output_to_keep():
    keep = {"cache": "present, size of axis 0"}
    with pytest.raises(InputError, match="no output 'present, size of axis 0'"):
        compile_model(step(), TARGET, dims={"past": (0, 4), "new": 1}, keep=keep)


Steps = list[tuple[int | None, int]]
"""Runs of a session: where each begins, None to go on; and how many rows it adds."""


def at_random() -> Steps:
    random, length, steps = np.random.default_rng(0), 0, Steps()
    for _ in range(30):
        back = length > 9 or random.integers(4) == 0
        start = int(random.integers(min(length, 9) + 1)) if back else None
        count = int(random.integers(1, 3))
        steps.append((start, count))
        length = (length if start is None else start) + count
    return steps


WALKS: dict[str, Steps] = {
    "to every bound, and one more": [(None, 1)] * 10,
    "two rows at once over a bound": [(None, 2)] * 5,
    "a new prompt": [(None, 1)] * 8 + [(0, 1), (None, 2)],
    "back to a part": [(None, 2)] * 4 + [(2, 1), (None, 2), (None, 2), (None, 2)],
    "at random": at_random(),
}


@pytest.mark.parametrize("steps", WALKS.values(), ids=WALKS)
def test_a_kept_value_moves_to_the_program_that_has_room(
    bounds: dict[str, Executable], steps: Steps
):
    session, cache = Session(bounds), np.zeros((0, 2), np.float32)
    for number, (start, count) in enumerate(steps):
        given = rows(number, count) | ({} if start is None else {"past": start})
        before = cache[:start]
        cache = np.concatenate([before, given["rows"]])
        found = session.run(given)["sum"]
        np.testing.assert_allclose(found, summed(cache), err_msg=f"{number}: {len(before)} rows")
        room = "small" if len(before) <= 2 else "middle" if len(before) <= 5 else "large"
        assert session.current == room


def test_a_change_moves_a_kept_value_over_the_link(bounds: dict[str, Executable]):
    session = Session(bounds)
    for number in range(4):
        session.run(rows(number))
    first, second = session.history
    assert (first.before, second.before, second.after) == ("", "small", "middle")
    # The number of rows that exist lies at one place in both programs, and stays there.
    assert second.out_bytes == 4 * 2 * 4
    assert second.in_bytes >= 7 * 2 * 4
    assert "cache" in session.weights()


def test_a_session_begins_with_nothing_kept(bounds: dict[str, Executable]):
    bounds["small"].run(rows(5) | {"past": 0})
    np.testing.assert_allclose(Session(bounds).run(rows(1))["sum"], summed(rows(1)["rows"]))


def test_a_kept_value_beyond_all_bounds_is_refused(bounds: dict[str, Executable]):
    session = Session(bounds)
    for number in range(5):
        session.run(rows(number, 2))
    match = (
        r"session: no program takes these lengths: state 'cache' holds 10 elements along axis 0, "
        r"so that past is 10; need .*, or compile with wider bounds: --dim past="
    )
    with pytest.raises(InputError, match=match):
        session.run(rows(1))
    match = "no program takes these lengths: state 'cache' holds 1 elements along axis 0; a run ca"
    session.run(rows(1) | {"past": 0})
    with pytest.raises(InputError, match=match):
        session.run(rows(1) | {"past": 2})
    np.testing.assert_allclose(session.run(rows(1) | {"past": 0})["sum"], summed(rows(1)["rows"]))


def test_the_strict_machine_has_the_kept_value_of_the_runs_before(bounds: dict[str, Executable]):
    session, cache = Session(bounds), np.zeros((0, 2), np.float32)
    for number in range(6):
        cache = np.concatenate([cache, rows(number)["rows"]])
        found = session.run(rows(number), strict=number % 2 == 1)["sum"]
        np.testing.assert_allclose(found, summed(cache))


def test_an_array_fits_another_shape_with_zeros():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert fitted(array, (3, 2)).tolist() == [[0, 1], [3, 4], [0, 0]]
    assert fitted(array, (2, 3)) is array


def test_a_saved_program_keeps_lengths(kept: Executable, tmp_path: Any):
    kept.save(tmp_path / "step.abele")
    again = compile_model(tmp_path / "step.abele")
    assert again.signature.kept_sizes == kept.signature.kept_sizes
    cache = np.concatenate([rows(0)["rows"], rows(1)["rows"]])
    again.run(rows(0))
    np.testing.assert_allclose(again.run(rows(1))["sum"], summed(cache))


def test_a_module_holds_the_sizes_of_its_states(kept: Executable):
    module = ModuleOp([])
    sizes = (KeptSize("cache", 0, 1, "held", ("past", "new")),)
    set_kept_sizes(module, sizes)
    assert kept_sizes(module) == sizes
    module = kept.module_at("nn").clone()
    for wrong, match in (
        (KeptSize("cach", 0, 0, "past.held", ("past",)), "no axis 0 of a state 'cach'"),
        (KeptSize("cache", 2, 0, "past.held", ("past",)), "no axis 2 of a state 'cache'"),
        (KeptSize("cache", 0, 0, "cache", ("past",)), "need a state 'cache', one integer"),
        (KeptSize("cache", 0, 0, "past.held", ("pas",)), "'pas' is no length"),
    ):
        set_kept_sizes(module, [wrong])
        with pytest.raises(InputError, match=rf"abele\.kept_sizes: {match}"):
            signature(module)


def test_the_device_refuses_a_length_out_of_bounds_too(kept: Executable):
    runner = kept.runners.at("nn")
    given = {"rows": np.zeros((2, 2), np.float32), "past": np.int32(5), "new": np.int32(1)}
    with pytest.raises(IndexFault, match="at past"):
        runner.run({name: np.asarray(each) for name, each in given.items()})
