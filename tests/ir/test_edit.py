"""Rewrites that passes make by hand, and their reports."""

import pytest
from xdsl.dialects.builtin import i32
from xdsl.dialects.test import TestOp
from xdsl.ir import Block, Operation
from xdsl.rewriter import InsertPoint

from abele.ir.edit import Edit, source_at
from abele.ir.rewriting import Source, Watcher, limited, may_rewrite, watched

SOURCE = Source("by hand")


class Log(Watcher):
    def __init__(self) -> None:
        self.events: list[str] = []

    def begin(self, source, root):
        self.events.append(f"begin {source}")

    def inserted(self, op):
        self.events.append("inserted")

    def replaced(self, op, values):
        self.events.append(f"replaced, {len(list(op.results[0].uses))} uses")

    def modified(self, op):
        self.events.append("modified")

    def removed(self, op):
        self.events.append("removed" if op.parent is not None else "removed too late")

    def end(self):
        self.events.append("end")


def program() -> tuple[Block, Operation, Operation]:
    made = TestOp(result_types=[i32])
    used = TestOp(operands=[made.results[0]])
    return Block([made, used]), made, used


def test_each_change_is_made_and_reported():
    block, made, used = program()
    log = Log()
    with watched(log), Edit(SOURCE, made) as edit:
        new = TestOp(result_types=[i32])
        edit.insert(new, InsertPoint.before(made))
        edit.replace(made, [new.results[0]])
        edit.set_operand(used, 0, new.results[0])
    assert list(block.ops) == [new, used]
    assert used.operands[0] is new.results[0]
    assert log.events == [
        *("begin by hand", "inserted", "replaced, 1 uses", "removed", "modified", "end")
    ]


def test_a_rewrite_counts_once_and_only_if_it_changes_something():
    _, made, used = program()
    with limited(1):
        with Edit(SOURCE, made):
            pass
        assert may_rewrite()
        with Edit(SOURCE, used) as edit:
            edit.erase(used)
            edit.erase(made)
        assert not may_rewrite()


def test_a_rewrite_that_fails_does_not_count():
    _, made, _ = program()
    log = Log()
    with watched(log), pytest.raises(ValueError, match="no good"), Edit(SOURCE, made) as edit:
        edit.modified(made)
        raise ValueError("no good")
    assert "end" not in log.events


def test_results_without_a_new_value_keep_their_uses():
    _, made, used = program()
    with Edit(SOURCE, made) as edit:
        edit.replace_uses(made, [None])
    assert used.operands[0] is made.results[0]


def test_a_source_is_where_its_function_is_written():
    found = source_at("it", program)
    assert (found.name, found.file) == ("it", "test_edit.py")
    assert found.line == program.__code__.co_firstlineno
