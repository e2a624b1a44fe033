"""Properties of what is left of a program that fails."""

from collections.abc import Callable

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given, settings
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from abele.dialects import control, nn, tile
from abele.dialects.levels import known_level
from abele.dialects.steps import Copy, Input, Output, Vertices
from abele.ir.symbols import symbol_of, symbols_in
from abele.ir.text import print_module
from abele.ir.verify import verify
from abele.tools.driver.reduce import reduce_module, reduced

from ...passes.programs import TO_EXCHANGE, TO_TILE, after
from ...some_tensors import context, module_of
from ...strategies import Program, nn_programs

BARE = 4
"""A module, a function, one operation and a return."""


def count(module: ModuleOp) -> int:
    return sum(1 for _ in module.walk())


def count_of(module: ModuleOp, kind: type[Operation]) -> int:
    return sum(isinstance(op, kind) for op in module.walk())


def has(*kinds: type[Operation]) -> Callable[[ModuleOp], bool]:
    return lambda module: set(kinds) <= {type(op) for op in module.walk()}


def main(body: str, results: str = "tensor<4xf32>", more: str = "") -> ModuleOp:
    return module_of(
        f"""{more}
        func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> ({results})
            attributes {{arg_names = ["left", "right"]}} {{ {body} }}""",
        context(),
        w=np.ones(4, np.float32),
    )


CHAIN = """
    %w = nn.load @w : tensor<4xf32>
    %0 = nn.neg %x : (tensor<4xf32>) -> tensor<4xf32>
    %1 = nn.add %0, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = nn.abs %1 : (tensor<4xf32>) -> tensor<4xf32>
    %3 = nn.sub %2, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    func.return %3 : tensor<4xf32>"""
STATE = "nn.state @w : tensor<4xf32> = {w}"


@pytest.mark.parametrize("kind", [nn.NegOp, nn.AddOp, nn.AbsOp, nn.SubOp])
def test_one_operation_is_left_of_a_chain(kind: type[Operation]):
    reduced = reduce_module(main(CHAIN, more=STATE), has(kind))
    assert has(kind)(reduced)
    assert count(reduced) == BARE


def test_two_operations_that_fail_together_are_left():
    reduced = reduce_module(main(CHAIN, more=STATE), has(nn.NegOp, nn.SubOp))
    assert count(reduced) == BARE + 1


def test_operations_between_make_way_for_their_operands():
    def negated_then_subtracted(module: ModuleOp) -> bool:
        found: set[Operation] = set()
        for op in module.walk():
            owners = {value.owner for value in op.operands}
            if isinstance(op, nn.NegOp) or owners & found:
                found.add(op)
        return any(isinstance(op, nn.SubOp) for op in found)

    reduced = reduce_module(main(CHAIN, more=STATE), negated_then_subtracted)
    assert count(reduced) == BARE + 1


def test_a_loop_makes_way_for_its_body():
    looped = main("""
        %0 = control.repeat 3 (%x) : (tensor<4xf32>) -> (tensor<4xf32>) {
        ^bb0(%a: tensor<4xf32>):
          %1 = nn.neg %a : (tensor<4xf32>) -> tensor<4xf32>
          control.yield %1 : tensor<4xf32>
        }
        func.return %0 : tensor<4xf32>""")
    assert count(reduce_module(looped, has(nn.NegOp))) == BARE
    assert count(reduce_module(looped, has(control.RepeatOp))) == BARE + 1


def test_a_function_stands_without_its_caller():
    called = main(
        """%0 = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
           func.return %0 : tensor<4xf32>""",
        more="""func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
           %0 = nn.neg %x : (tensor<4xf32>) -> tensor<4xf32>
           %1 = nn.abs %0 : (tensor<4xf32>) -> tensor<4xf32>
           func.return %1 : tensor<4xf32> }""",
    )
    assert count(reduce_module(called, has(nn.NegOp))) == BARE


def test_names_of_the_host_stay_with_their_arguments():
    reduced = reduce_module(main(CHAIN, more=STATE), has(nn.SubOp))
    assert '"right"' in print_module(reduced)
    assert '"left"' not in print_module(reduced)


def test_programs_of_tiles_are_reduced():
    reduced = reduce_module(after(TO_TILE), has(tile.CopyOp))
    verify(reduced, known_level(reduced))
    kinds = [op.name for op in reduced.walk()]
    assert kinds.count("tile.copy") == 1
    assert "tile.vertices" not in kinds


def in_a_row(count: int) -> Callable[[ModuleOp], bool]:
    """Whether what an input brings goes through so many vertices, at least, to an output."""

    def found(module: ModuleOp) -> bool:
        passed: dict[str, int] = {}
        for op in module.walk():
            read, written = (list(symbols_in(op.properties.get(n))) for n in ("reads", "writes"))
            most = max((passed[name] for name in read if name in passed), default=None)
            if isinstance(op, Output) and (most or 0) >= count:
                return True
            if isinstance(op, Input):
                most = 0
            elif isinstance(op, Vertices) and most is not None:
                most += 1
            passed |= dict.fromkeys(written if most is not None else (), most or 0)
        return False

    return found


KINDS = (Input, Copy, Vertices, Output)


@pytest.mark.parametrize("passes", [TO_TILE, TO_EXCHANGE], ids=["tile", "exchange"])
def test_reducing_a_program_of_tile_cuts_it_before_and_after_vertices(passes: str):
    module = after(passes)
    assert [count_of(module, kind) for kind in KINDS] == [1, 3, 3, 1]
    reduced = reduce_module(module, in_a_row(1))
    verify(reduced, known_level(reduced))
    assert [count_of(reduced, kind) for kind in KINDS] == [1, 0, 1, 1]


def test_variables_on_both_sides_of_a_copy_become_one():
    reduced = reduce_module(after(TO_TILE), in_a_row(3))
    verify(reduced, known_level(reduced))
    # The partials have another layout than what they are added up from.
    assert [count_of(reduced, kind) for kind in KINDS] == [1, 1, 3, 1]
    assert {"image", "transpose"}.isdisjoint(map(symbol_of, reduced.body.block.ops))


@settings(max_examples=15)
@given(program=nn_programs(max_ops=30), data=st.data())
def test_any_program_is_reduced_to_the_operation_that_fails(program: Program, data: st.DataObject):
    ops = [type(op) for op in program.module.walk() if op.name.startswith("nn.")]
    kinds = [kind for kind in dict.fromkeys(ops) if kind is not nn.StateOp]
    assume(kinds)
    failing = data.draw(st.sampled_from(kinds))
    reduced = reduce_module(program.module, has(failing))
    verify(reduced)
    assert count(reduced) <= BARE + (failing is nn.LoadOp)


def test_every_candidate_of_the_reducer_verifies_and_may_be_modified():
    asked: list[int] = []

    def fails(module: ModuleOp) -> bool:
        verify(module)
        found = has(nn.AbsOp)(module)
        for op in tuple(module.body.block.ops):
            op.detach()
            op.erase()
        asked.append(count(module))
        return found

    assert count(reduce_module(main(CHAIN, more=STATE), fails)) == BARE
    assert set(asked) == {1}


def test_the_same_module_is_reduced_in_the_same_way():
    first, second = (
        print_module(reduce_module(main(CHAIN, more=STATE), has(nn.AddOp))) for _ in range(2)
    )
    assert first == second


def test_the_given_module_stays_as_it_is():
    module = main(CHAIN, more=STATE)
    before = print_module(module)
    reduce_module(module, has(nn.AddOp))
    assert print_module(module) == before


def test_without_time_nothing_is_left_out():
    module = main(CHAIN, more=STATE)
    assert count(reduce_module(module, has(nn.AddOp), seconds=0)) == count(module)


def test_a_module_that_does_not_fail_is_refused():
    with pytest.raises(ValueError, match="does not fail"):
        reduce_module(main(CHAIN, more=STATE), lambda _: False)


def test_axes_become_shorter():
    module = module_of(
        """func.func @main(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>) {
           %w = nn.load @w : tensor<4x6xf32>
           %0 = nn.add %x, %w : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
           func.return %0 : tensor<4x6xf32> }
           nn.state @w : tensor<4x6xf32> = {w}""",
        context(),
        w=np.ones((4, 6), np.float32),
    )
    small = reduced(module, has(nn.AddOp, nn.StateOp))
    assert small.complete
    assert "tensor<1x1xf32>" in print_module(small.module)
    assert "4x6" not in print_module(small.module)


def test_a_reduction_that_ran_out_of_time_says_so():
    assert not reduced(main(CHAIN, more=STATE), has(nn.AddOp), seconds=0).complete


def test_one_operation_among_many_is_found_with_few_questions():
    ops = "".join(
        f"%{i + 1} = nn.{'exp' if i == 23 else 'neg'} %{i} : (tensor<4xf32>) -> tensor<4xf32>\n"
        for i in range(40)
    ).replace("%0 ", "%x ")
    module = main(f"{ops} func.return %40 : tensor<4xf32>")
    asked = list[int]()

    def fails(candidate: ModuleOp) -> bool:
        asked.append(count(candidate))
        return count_of(candidate, nn.ExpOp) > 0

    assert count(reduce_module(module, fails)) == BARE
    assert len(asked) < 60
    assert sum(asked) < 10 * count(module)


def test_attributes_that_the_failure_does_not_need_are_removed():
    module = main(CHAIN, more=STATE)
    for op in module.walk():
        op.attributes["note"] = StringAttr(op.name)

    def fails(candidate: ModuleOp) -> bool:
        return any(isinstance(op, nn.SubOp) and "note" in op.attributes for op in candidate.walk())

    found = reduce_module(module, fails)
    assert [op.name for op in found.walk() if "note" in op.attributes] == ["nn.sub"]


def test_each_smaller_module_is_shown():
    shown = list[int]()
    module = main(CHAIN, more=STATE)
    found = reduced(module, has(nn.AbsOp), better=lambda each: shown.append(count(each)))
    assert shown == sorted(shown, reverse=True)
    assert shown[-1] == count(found.module)
