from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp, StringAttr, i32
from xdsl.dialects.test import TestOp
from xdsl.ir import Operation
from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)

from abele.ir.errors import InputError
from abele.ir.provenance import LocatingWalker, named
from abele.ir.rewriting import (
    Rewrite,
    Source,
    Watcher,
    limited,
    may_rewrite,
    period,
    source_of,
    watched,
)


def op(label: str) -> TestOp:
    made = TestOp(result_types=[i32], attributes={"label": StringAttr(label)})
    made.location = named(label)
    return made


def label(of: Operation) -> str:
    value = of.attributes["label"]
    assert isinstance(value, StringAttr)
    return value.data


def module(*labels: str) -> ModuleOp:
    return ModuleOp([op(each) for each in labels])


class Rename(RewritePattern):
    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if isinstance(op, TestOp) and label(op) in self.names:
            new = TestOp(
                result_types=[i32], attributes={"label": StringAttr(self.names[label(op)])}
            )
            rewriter.replace(op, new)


class Notes(Watcher):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def begin(self, source, root):
        self.lines.append(f"begin {source.name} on {label(root)}")

    def inserted(self, op):
        self.lines.append(f"inserted {label(op)}")

    def replaced(self, op, values):
        self.lines.append(f"replaced {label(op)} by {label(values[0].owner)}")

    def removed(self, op):
        self.lines.append(f"removed {label(op)}")

    def end(self):
        self.lines.append("end")


def labels(of: ModuleOp) -> list[str]:
    return [label(each) for each in of.body.block.ops]


def test_a_watcher_is_notified_of_each_change_of_each_rewrite():
    notes, program = Notes(), module("a", "b")
    with watched(notes):
        LocatingWalker(Rename({"b": "c"})).rewrite_module(program)
    assert notes.lines == [
        "begin Rename on b",
        "inserted c",
        "replaced b by c",
        "removed b",
        "end",
    ]


class Typed(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TestOp, rewriter: PatternRewriter) -> None:
        pass


@pytest.mark.parametrize("pattern", [Rename({}), Typed()])
def test_a_pattern_is_named_by_its_class_file_and_line(pattern: RewritePattern):
    source, name = source_of(pattern), type(pattern).__name__
    assert (source.name, source.file) == (name, "test_rewriting.py")
    line = Path(__file__).read_text().split("\n")[source.line - 1]
    assert line == f"class {name}(RewritePattern):"


@pytest.mark.parametrize(("allowed", "expected"), [(0, "ab"), (1, "xb"), (2, "xy"), (9, "xy")])
def test_only_the_allowed_number_of_rewrites_happen(allowed: int, expected: str):
    program = module("a", "b")
    with limited(allowed):
        LocatingWalker(Rename({"a": "x", "b": "y"})).rewrite_module(program)
    assert "".join(labels(program)) == expected
    assert may_rewrite()


def test_endless_patterns_are_stopped_and_their_cycle_is_named():
    class Back(Rename):
        pass

    class Both(RewritePattern):
        source = Source("none")

        def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
            for pattern in (Rename({"a": "b"}), Back({"b": "a"})):
                if isinstance(op, TestOp) and label(op) in pattern.names:
                    self.source = Source(type(pattern).__name__, "mine.rw", 3)
                    pattern.match_and_rewrite(op, rewriter)
                    return

    with pytest.raises(InputError, match="never end, last at a:") as caught:
        LocatingWalker(Both()).rewrite_module(module("a"))
    assert "Rename (mine.rw:3) -> Back (mine.rw:3)" in str(caught.value) or (
        "Back (mine.rw:3) -> Rename (mine.rw:3)" in str(caught.value)
    )


def test_a_pass_written_by_hand_reports_its_rewrites_too():
    notes = Notes()
    old, new = op("old"), op("new")
    with watched(notes), limited(1):
        rewrite = Rewrite(Source("by hand"), old)
        rewrite.inserted(new)
        rewrite.replaced(old, new.results)
        rewrite.removed(old)
        rewrite.done()
        assert not may_rewrite()
    assert notes.lines[0] == "begin by hand on old"
    assert notes.lines[-1] == "end"


def test_a_rewrite_that_changes_nothing_does_not_count():
    notes = Notes()
    with watched(notes), limited(1):
        Rewrite(Source("nothing"), op("a")).done()
        assert may_rewrite()
    assert notes.lines == []


def test_the_shortest_repeated_run_is_the_cycle():
    a, b, c = Source("a"), Source("b"), Source("c")
    assert period((c, a, b, a, b, a, b)) == (a, b)
    assert period((a,) * 8) == (a,)
    assert period((a, b, c)) == (a, b, c)
