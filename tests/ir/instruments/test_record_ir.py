import re
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from some_passes import Append, Crash, Nothing
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, i32
from xdsl.dialects.func import FuncOp
from xdsl.dialects.test import TestOp
from xdsl.ir import Block, Region
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from abele.dialects.abele import LayoutAttr
from abele.ir.context import AbeleContext
from abele.ir.geometry.grid import Cut
from abele.ir.geometry.layout import Layout
from abele.ir.geometry.space import identity_map
from abele.ir.instruments.record_ir import TOP, UNREPORTED, Change, RecordIR, Stage
from abele.ir.pass_manager import PassManager
from abele.ir.provenance import LocatingWalker, named
from abele.ir.rewriting import Rewrite, Source
from abele.ir.text import print_module


def op_named(name: str, *operands: TestOp) -> TestOp:
    op = TestOp(
        [each.results[0] for each in operands],
        result_types=[i32],
        attributes={"name": StringAttr(name)},
    )
    op.location = named(name)
    return op


def name_of(op: TestOp) -> str:
    name = op.attributes["name"]
    assert isinstance(name, StringAttr)
    return name.data


def program() -> ModuleOp:
    """A function in which b reads a and c reads b."""
    a = op_named("a")
    b = op_named("b", a)
    c = op_named("c", b)
    return ModuleOp([FuncOp("f", ((), ()), Region(Block([a, b, c])))])


@dataclass(eq=False, repr=False)
class Expand(RewritePattern):
    """Replace an operation of a name by a pair, of which the second takes over."""

    name: str

    def match_and_rewrite(self, op: object, rewriter: PatternRewriter, /) -> None:
        if isinstance(op, TestOp) and op.attributes.get("name") == StringAttr(self.name):
            first = op_named("first")
            rewriter.replace(op, [first, op_named("second", first)])


@dataclass(frozen=True)
class ExpandAll(ModulePass):
    name = "expand-all"
    names: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in self.names:
            LocatingWalker(Expand(each)).rewrite_module(op)


@dataclass(frozen=True)
class Wrap(ModulePass):
    """Report an operation that holds others, then change what it holds."""

    name = "wrap"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        inner = op_named("inner")
        outer = TestOp(regions=[Region(Block([inner]))])
        op.body.block.add_op(outer)
        rewrite = Rewrite(Source("wrap"), op)
        rewrite.inserted(outer)
        rewrite.done()
        inner.attributes["name"] = StringAttr("changed")
        rewrite = Rewrite(Source("change"), inner)
        rewrite.modified(inner)
        rewrite.done()
        rewrite = Rewrite(Source("unwrap"), outer)
        rewrite.removed(outer)
        outer.detach()
        outer.erase()
        rewrite.done()


@dataclass(frozen=True)
class Quiet(ModulePass):
    """Report one change of two."""

    name = "quiet"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        end = op.body.block.last_op
        assert end is not None
        for name in ("reported", "unreported"):
            new = op_named(name)
            op.body.block.insert_op_before(new, end)
            if name == "reported":
                rewrite = Rewrite(Source("quiet"), op)
                rewrite.inserted(new)
                rewrite.done()


LAYOUTS = [
    LayoutAttr(
        Layout(
            (Cut(n, 1), Cut(30, 5), Cut(7, 1)), identity_map((0, 1, 2), (n, 30, 7)), first_tile=9
        )
    )
    for n in range(2, 8)
]


@dataclass(frozen=True)
class Drop(ModulePass):
    """Take the layout of the first operation away, without a report."""

    name = "drop"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        del op.attributes["layout"]


@dataclass(frozen=True)
class Lay(ModulePass):
    """Give each operation of a name a layout of its own; report all but the last."""

    name = "lay"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ops = [each for each in op.walk() if isinstance(each, TestOp)]
        for each, layout in zip(ops, LAYOUTS[1:], strict=False):
            each.attributes["layout"] = layout
            if each is not ops[-1]:
                rewrite = Rewrite(Source("lay"), each)
                rewrite.modified(each)
                rewrite.done()


def recorded(module: ModuleOp, *passes: ModulePass) -> list[Stage]:
    record = RecordIR()
    PassManager(passes, (record,)).run(AbeleContext(), module)
    return record.stages


def lines_of(stage: Stage) -> list[str]:
    assert stage.listing is not None
    return [line.text for line in stage.listing.lines]


def unnumbered(line: str) -> str:
    return re.sub(r"%\w+", "%", line)


def replayed(before: Stage, stage: Stage, changes: Sequence[Change]) -> list[str]:
    """The lines after some changes, as a page puts them together."""
    texts = lines_of(before) + [line.text for line in stage.new_lines]
    numbers = list(range(len(lines_of(before))))
    for change in changes:
        for after, run in change.inserted:
            at = 0 if after == TOP else numbers.index(after) + 1
            numbers[at:at] = run
        numbers = [number for number in numbers if number not in change.removed]
    return [texts[number] for number in numbers]


def test_the_input_and_every_pass_is_a_stage():
    stages = recorded(ModuleOp([]), Nothing(), Append(2))
    assert [each.name for each in stages] == ["", "nothing", "append"]
    assert [each.listing is None for each in stages] == [False, True, False]
    assert stages[2].spec == "append{count=2}"


def test_each_rewrite_has_its_rule_and_the_line_that_was_matched():
    before, stage = recorded(program(), ExpandAll(("b", "c")))
    assert [each.source.name for each in stage.changes] == ["Expand", "Expand"]
    assert '"b"' in lines_of(before)[stage.changes[0].root]
    assert stage.changes[0].source.file == "test_record_ir.py"


def test_rewrites_turn_the_previous_stage_into_the_next():
    before, stage = recorded(program(), ExpandAll(("a", "b", "c")))
    assert replayed(before, stage, ()) == lines_of(before)
    after = replayed(before, stage, stage.changes)
    assert [unnumbered(line) for line in after] == [unnumbered(line) for line in lines_of(stage)]


def test_values_keep_their_names_from_one_rewrite_to_the_next():
    before, stage = recorded(program(), ExpandAll(("b",)))
    once = replayed(before, stage, stage.changes)
    unchanged = [line for line in once if '"a"' in line]
    assert unchanged == [line for line in lines_of(before) if '"a"' in line]
    second = next(line.split()[0] for line in once if '"second"' in line)
    assert any(f"({second})" in line and '"c"' in line for line in once)


def test_operations_in_a_region_appear_change_and_disappear_with_it():
    before, stage = recorded(ModuleOp([]), Wrap())
    kinds = [each.source.name for each in stage.changes]
    assert kinds == ["wrap", "change", "unwrap"]
    assert any('"inner"' in line for line in replayed(before, stage, stage.changes[:1]))
    changed = replayed(before, stage, stage.changes[:2])
    assert any('"changed"' in line for line in changed)
    assert not any('"inner"' in line for line in changed)
    assert replayed(before, stage, stage.changes) == lines_of(before)


def test_aliases_of_new_attributes_are_defined_where_they_belong():
    module = program()
    first = next(each for each in module.walk() if isinstance(each, TestOp))
    first.attributes["first"] = LAYOUTS[0]
    before, stage = recorded(module, Lay())
    assert [each.source.name for each in stage.changes] == ["lay", "lay", UNREPORTED.name]
    assert lines_of(before)[0].startswith("#layout0 = ")
    once = replayed(before, stage, stage.changes[:1])
    assert [line.split()[0] for line in once[:3]] == ["#layout0", "#layout1", "builtin.module"]
    assert replayed(before, stage, stage.changes) == lines_of(stage)
    assert stage.listing is not None
    assert stage.listing.text == print_module(module)


def test_an_alias_means_the_same_in_all_stages():
    module = program()
    for each, layout in zip(module.walk(), LAYOUTS, strict=False):
        each.attributes["layout"] = layout
    before, stage = recorded(module, Drop())
    first, second = (
        {line for line in lines_of(each) if line.startswith("#")} for each in (before, stage)
    )
    assert second < first
    assert stage.listing is not None
    assert stage.listing.text == print_module(module)


def test_unreported_changes_become_one_last_change():
    before, stage = recorded(program(), Quiet())
    assert [each.source for each in stage.changes] == [Source("quiet"), UNREPORTED]
    assert any("unreported" in line for line in replayed(before, stage, stage.changes))
    assert len(replayed(before, stage, stage.changes)) == len(lines_of(stage))


def test_the_changes_of_a_failing_pass_are_recorded():
    record = RecordIR()
    with pytest.raises(RuntimeError, match="half way"):
        PassManager((Nothing(), Crash()), (record,)).run(AbeleContext(), ModuleOp([]))
    assert [each.name for each in record.stages] == ["", "nothing", "crash"]
    assert record.stages[-1].error == "RuntimeError: half way\nand more"
    assert any("node0" not in line and "test.op" in line for line in lines_of(record.stages[-1]))


def test_no_changes_are_recorded_after_the_pass():
    record, module = RecordIR(), program()
    PassManager((ExpandAll(("b",)),), (record,)).run(AbeleContext(), module)
    before = len(record.stages[-1].changes)
    ExpandAll(("c",)).apply(AbeleContext(), module)
    assert len(record.stages[-1].changes) == before


@dataclass(frozen=True)
class Prepend(ModulePass):
    """Report an operation before the first of a function."""

    name = "prepend"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        first = next(each for each in op.walk() if isinstance(each, TestOp))
        block, new = first.parent, op_named("new")
        assert block is not None
        block.insert_op_before(new, first)
        rewrite = Rewrite(Source("prepend"), first)
        rewrite.inserted(new)
        rewrite.done()


def test_an_insertion_before_the_first_operation_is_replayed_there():
    before, stage = recorded(program(), Prepend())
    (change,) = stage.changes
    lines = replayed(before, stage, [change])
    assert [unnumbered(line) for line in lines] == [unnumbered(line) for line in lines_of(stage)]


def test_insertions_before_the_first_operation_come_first():
    module = program()
    before, stage = recorded(module, ExpandAll(("a",)))
    lines = replayed(before, stage, stage.changes)
    assert [i for i, line in enumerate(lines) if '"first"' in line] == [2]
