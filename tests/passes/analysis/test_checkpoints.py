from some_tensors import context, module_of

from abele.ir.provenance import origin
from abele.passes.analysis.checkpoints import between_checkpoints

WIDE, NARROW = "tensor<64xf32>", "tensor<f32>"


def chain(count: int, narrow: frozenset[int] = frozenset()) -> str:
    """A chain of values, of which some are single numbers: sums that are spread again."""
    body, last = [], "%x"
    for i in range(count):
        if i in narrow:
            body.append(
                f'%v{i} = nn.reduce "sum" {last} axes [0] : ({WIDE}) -> {NARROW} loc("v{i}")'
            )
        elif i - 1 in narrow:
            body.append(f'%v{i} = nn.expand {last} to [64] : ({NARROW}) -> {WIDE} loc("v{i}")')
        else:
            body.append(f'%v{i} = nn.exp {last} : ({WIDE}) -> {WIDE} loc("v{i}")')
        last = f"%v{i}"
    text = "\n".join(body)
    return f"func.func @main(%x: {WIDE}) -> {WIDE} {{\n{text}\nfunc.return {last} : {WIDE}\n}}"


def left_out(text: str) -> list[str | None]:
    return [origin(op) for op in between_checkpoints(module_of(text, context()))]


def test_intervals_shrink_and_single_operations_are_kept():
    # 18 operations: sqrt(36) - 1 = 5, and 0.75 of it is 3: intervals of 3, 2 and 1 operations. The
    # first value of each is kept, as all are equally large. No operation reads the last one.
    assert left_out(chain(18)) == ["v1", "v2", "v4", "v17"]


def test_the_place_with_the_fewest_bytes_is_kept():
    found = left_out(chain(18, frozenset({1})))
    assert "v1" not in found
    assert {"v0", "v2"} <= set(found)


def test_what_the_backward_phase_reads_is_not_kept_for_it():
    # Backward operations read each value, and one of the forward phase comes after them.
    text = chain(18)
    body, end = text.rsplit("\nfunc.return", 1)
    backward = "\n".join(
        f'%g{i} = nn.exp %v{i} : ({WIDE}) -> {WIDE} loc("v{i}/backward")' for i in range(18)
    )
    late = f'%z = nn.exp %x : ({WIDE}) -> {WIDE} loc("late")'
    program = f"{body}\n{backward}\n{late}\nfunc.return{end}"
    module = f"builtin.module attributes {{abele.forward = []}} {{\n{program}\n}}"
    assert {"v1", "v2", "v4"} <= set(left_out(module))
    assert not any("backward" in (name or "") for name in left_out(module))
