"""Variables that a superstep sends and receives lie in different memory elements."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from abele.backends.elements import Elements
from abele.backends.target import resolve_target
from abele.dialects import tile
from abele.ir.support.arrays import Integers
from abele.ir.text import parse_module
from abele.ir.upstream import ModuleOp
from abele.passes.allocate import Allocate
from abele.passes.analysis.lifetimes import lifetimes
from abele.passes.analysis.memory_elements import keep_apart, sent_and_received
from abele.passes.analysis.packing import Boxes, pack

from ...strategies import context

ELEMENTS = Elements(size=128, wide=256, border=512, reserved=64)

PROGRAM = """
builtin.module attributes {{abele.target = "{target}"}} {{
  tile.variable @a : tensor<32xf32> layout <[32 by 2] (d0) of [32]>
  tile.variable @b : tensor<32xf32> layout <[32 by 2] (d0) of [32]>
  tile.variable @large : tensor<256xf32> layout <[256 by 2] (d0) of [256]>
  func.func @main() {{
    tile.input "x" -> @a : tensor<32xf32> {{superstep = 0 : i64}}
    tile.copy [@a] -> @b {{superstep = 1 : i64}}
    tile.output @b -> "y" : tensor<32xf32> {{superstep = 2 : i64}}
    tile.input "z" -> @large : tensor<256xf32> {{superstep = 3 : i64}}
    tile.output @large -> "w" : tensor<256xf32> {{superstep = 4 : i64}}
    func.return
  }}
}}
"""


def placed(target: str, **options: bool) -> dict[str, int]:
    made = context()
    module = parse_module(PROGRAM.format(target=target), made)
    Allocate(**options).apply(made, module)
    return {
        v.symbol: v.attributes["address"].value.data  # pyright: ignore
        for v in module.walk()
        if isinstance(v, tile.VariableOp)
    }


def test_what_is_sent_and_what_is_received_lie_in_different_elements():
    assert placed("tiny:2") == {"a": 0, "b": 64, "large": 0}
    apart = placed("tiny:2,memory.element_bytes=256")
    assert apart["a"] // 256 != apart["b"] // 256


def test_no_byte_more_is_used_unless_asked():
    # The large variable ends at 512, so that a second element of 512 bytes would be too much.
    target = "tiny:2,memory.element_bytes=512"
    assert placed(target) == {"a": 0, "b": 64, "large": 0}
    apart = placed(target, spread=True)
    assert apart["a"] // 512 != apart["b"] // 512


def test_elements_are_small_below_the_border_and_wide_above():
    address = [0, 63, 64, 191, 192, 447, 448, 703, 704]
    assert ELEMENTS.numbers(address).tolist() == [0, 0, 1, 1, 2, 3, 4, 4, 5]
    low, high = ELEMENTS.around([70, 60, 440], [80, 70, 456])
    assert low.tolist() == [64, -64, 320]
    assert high.tolist() == [192, 192, 704]


def test_the_elements_of_the_c600_are_those_of_its_chip():
    elements = Elements.of(resolve_target("c600"))
    assert elements is not None
    base, border, reserved = 0x4C000, 0x80000, elements.reserved
    assert elements.numbers([border - base - reserved - 1, border - base - reserved]).tolist() == [
        12,
        13,
    ]
    assert Elements.of(resolve_target("mk2")) is None


def random_program(sizes: list[int], copies: list[tuple[int, int]]) -> ModuleOp:
    """Variables of some sizes, filled in turn, and copies between those of one size."""
    lines = [
        f"tile.variable @v{i} : tensor<{n}xf32> layout <[{n} by 2] (d0) of [{n}]>"
        for i, n in enumerate(sizes)
    ]
    body = [
        f'tile.input "x{i}" -> @v{i} : tensor<{n}xf32> {{superstep = {i} : i64}}'
        for i, n in enumerate(sizes)
    ]
    for k, (i, j) in enumerate(copies, len(sizes)):
        if i != j and sizes[i] == sizes[j]:
            body.append(f"tile.copy [@v{i}] -> @v{j} {{superstep = {k} : i64}}")
    text = "\n".join([*lines, "func.func @main() {", *body, "func.return", "}"])
    return parse_module(text, context())


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from([16, 32, 64, 128]), min_size=2, max_size=9),
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=12),
    st.sampled_from([0, 4096]),
)
def test_addresses_stay_legal_with_fewer_shared_elements(
    sizes: list[int], wanted: list[tuple[int, int]], room: int
):
    copies = [(i % len(sizes), j % len(sizes)) for i, j in wanted]
    module = random_program(sizes, copies)
    variables = [v for v in module.walk() if isinstance(v, tile.VariableOp)]
    lives = lifetimes(module, variables)
    before = pack(variables, lives)
    pairs = sent_and_received(module, variables)
    fixed = np.arange(len(variables)) % 4 == 3
    after = keep_apart(variables, lives, before, fixed, pairs, ELEMENTS, room)

    boxes, every = Boxes(variables, lives), np.arange(len(variables))
    assert all(not len(boxes.hit(i, every[every != i], after)) for i in every)
    assert (after[fixed] == before[fixed]).all()
    assert (after >= 0).all()
    assert (after % 8 == 0).all()
    end = max(room, int((before + boxes.size).max()))
    assert (after + boxes.size <= end).all()

    def shared(address: Integers) -> set[tuple[int, int]]:
        first = ELEMENTS.numbers(address)
        last = ELEMENTS.numbers(address + boxes.size - 1)
        return {(i, j) for i, j in pairs.tolist() if first[i] <= last[j] and first[j] <= last[i]}

    assert shared(after) <= shared(before)
    if room and not fixed.any():
        assert not shared(after)
