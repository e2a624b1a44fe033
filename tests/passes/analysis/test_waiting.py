from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from some_tensors import context, counting, module_of
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block

from abele.passes.analysis.waiting import Moments, moments

T = "tensor<4xf32>"


def block_of(body: str) -> Block:
    text = f"""
    nn.state @w : {T} = {{w}}
    func.func @main(%x: {T}) -> {T} {{
      {body}
    }}"""
    module = module_of(text, context(), w=counting((4,)))
    return next(op for op in module.walk() if isinstance(op, FuncOp)).body.block


def chain(length: int, *reads: int) -> Block:
    """%v0 = exp %x, %v1 = exp %v0, ...; those of some numbers add %v0 to what they read."""
    lines = [f"%v0 = nn.exp %x : ({T}) -> {T}"]
    for i in range(1, length):
        if i in reads:
            lines.append(f"%v{i} = nn.add %v{i - 1}, %v0 : ({T}, {T}) -> {T}")
        else:
            lines.append(f"%v{i} = nn.exp %v{i - 1} : ({T}) -> {T}")
    return block_of("\n".join([*lines, f"func.return %v{length - 1} : {T}"]))


def stays_of_the_first(block: Block) -> list[list[int]]:
    found = moments(block)
    readers = found.readers_in_any_shape(found.ops[0].results[0])
    return [[each.at for each in stay] for stay in found.stays(readers)]


def test_readers_are_split_at_the_longest_wait():
    assert stays_of_the_first(chain(12, 10, 11)) == [[1], [10, 11]]


def test_a_wait_of_at_least_half_the_longest_is_long():
    assert stays_of_the_first(chain(20, 5, 10, 14, 15)) == [[1], [5], [10], [14, 15]]


def test_a_wait_of_less_than_half_the_longest_is_short():
    assert stays_of_the_first(chain(20, 4, 12)) == [[1, 4], [12]]


def test_a_value_waits_only_while_something_is_computed():
    assert stays_of_the_first(chain(3, 1, 2)) == [[1, 1, 2]]
    block = block_of(f"""
      %v0 = nn.exp %x : ({T}) -> {T}
      %a = nn.exp %v0 : ({T}) -> {T}
      %w = nn.load @w : {T}
      %r = nn.reshape %a to [2, 2] : ({T}) -> tensor<2x2xf32>
      %b = nn.add %v0, %w : ({T}, {T}) -> {T}
      func.return %b : {T}""")
    assert stays_of_the_first(block) == [[1, 4]]


def test_a_read_of_a_reshape_counts_when_the_reshape_is_read():
    block = block_of(f"""
      %v0 = nn.exp %x : ({T}) -> {T}
      %r = nn.reshape %v0 to [2, 2] : ({T}) -> tensor<2x2xf32>
      %s = nn.reshape %r to [1, 4] : (tensor<2x2xf32>) -> tensor<1x4xf32>
      %a = nn.exp %v0 : ({T}) -> {T}
      %b = nn.exp %a : ({T}) -> {T}
      %c = nn.exp %b : ({T}) -> {T}
      %d = nn.exp %s : (tensor<1x4xf32>) -> tensor<1x4xf32>
      func.return %c : {T}""")
    assert stays_of_the_first(block) == [[3], [6]]
    found = moments(block)
    assert [each.at for each in found.readers(found.ops[0].results[0])] == [3]


def test_a_read_in_a_region_counts_as_a_read_of_its_parent_operation():
    block = block_of(f"""
      %v0 = nn.exp %x : ({T}) -> {T}
      %a = nn.exp %v0 : ({T}) -> {T}
      %b = nn.exp %a : ({T}) -> {T}
      %c = control.repeat 3 (%b) : ({T}) -> ({T}) {{
      ^bb0(%y: {T}):
        %r = nn.reshape %v0 to [4] : ({T}) -> {T}
        %z = nn.add %y, %r : ({T}, {T}) -> {T}
        control.yield %z : {T}
      }}
      func.return %c : {T}""")
    assert stays_of_the_first(block) == [[1], [3]]


def test_the_first_stay_ends_before_a_hasty_reader():
    block = chain(20, 4, 12, 14)
    found = moments(block)
    readers = tuple(found.readers(found.ops[0].results[0]))
    hasty = {found.ops[4], found.ops[14]}
    stays = found.stays(readers, hasty)
    assert [[each.at for each in stay] for stay in stays] == [[1], [4], [12, 14]]


def test_an_operation_that_runs_with_another_reads_at_the_same_moment():
    block = chain(8, 6)
    found = moments(block)
    late = found.ops[6]
    copy = found.ops[1].clone()
    block.insert_op_before(copy, late)
    found.index[copy] = found.index[late]
    readers = found.readers(found.ops[0].results[0])
    assert [[each.at for each in stay] for stay in found.stays(readers)] == [[1], [6, 6]]


@given(st.sets(st.integers(1, 30), min_size=1))
def test_stays_are_the_readers_in_order_and_the_longest_wait_is_between_two(reads: set[int]):
    block = chain(32, *reads)
    found: Moments = moments(block)
    readers = tuple(found.readers(found.ops[0].results[0]))
    stays = found.stays(readers)
    order = [each.at for stay in stays for each in stay]
    assert order == sorted(each.at for each in readers)
    waits = [b - a for a, b in pairwise(order)]
    between = [b[0].at - a[-1].at for a, b in pairwise(stays)]
    longest = max(waits, default=0)
    if longest > 1:
        assert max(between) == longest
        assert all(2 * wait >= longest for wait in between)
    else:
        assert not between


def test_a_value_without_readers_has_one_empty_stay():
    found = moments(block_of(f"%v0 = nn.exp %x : ({T}) -> {T}\nfunc.return %x : {T}"))
    assert found.stays(found.readers(found.ops[0].results[0])) == [[]]
