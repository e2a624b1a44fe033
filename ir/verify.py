"""Verifies modules: xDSL's own checks, dominance, and the table of a level."""

from functools import cache
from typing import NoReturn

from xdsl.ir import Block, ErasedSSAValue, Operation, Region, SSAValue
from xdsl.traits import IsolatedFromAbove, IsTerminator, NoTerminator

from .legality import Constraint, ModuleFacts
from .level import Level
from .provenance import place
from .upstream import DominanceInfo, ModuleOp, UnregisteredOp, VerifyException
from .xdsl.definition_checks import speed_up_check
from .xdsl.fields import operands_of, successors_of
from .xdsl.verified_by_form import verify_if_changed
from .xdsl.walk import operations

FOUND = (VerifyException, ValueError, ArithmeticError, AttributeError, LookupError, TypeError)
"""What verifiers raise. Those of xDSL's own dialects stumble over some of what they should refuse,
and then raise the last four.
"""


class IllFormed(VerifyException):
    """An operation is not well formed.

    Attributes:
        op: the operation.
    """

    def __init__(self, message: str, op: Operation) -> None:
        super().__init__(message)
        self.op = op


def verify(module: ModuleOp, level: Level | None = None) -> None:
    """Raise IllFormed, a VerifyException, for the first operation that is not well formed.

    The message names the operation, where it came from and what is wrong. It never contains the
    module.

    Args:
        level: the level of the module, whose table must hold; None to look at each operation alone.
    """
    _verify_operations(module)
    verify_dominance(module)
    if level is not None:
        verify_level(module, level)


def verify_level(module: ModuleOp, level: Level) -> None:
    """Raise IllFormed for the first operation that breaks a level's table. Check nothing else."""
    table, facts = level.table, ModuleFacts(module)
    known: dict[type[Operation], tuple[Constraint, ...]] = {}
    constrained: list[tuple[Operation, tuple[Constraint, ...]]] = []
    for op in facts.operations:
        needs = known.get(type(op))
        if needs is None:
            registered = not isinstance(op, UnregisteredOp)
            name = op.name if registered else op.op_name.data
            found = table.needs(name)
            if found is None and not level.open:
                _fail(op, f"{name} is not legal here; legal: {', '.join(sorted(table.names))}")
            needs = found or ()
            if registered:
                known[type(op)] = needs
        if needs:
            constrained.append((op, needs))
    for op, needs in constrained:
        try:
            for each in needs:
                each.check(op, facts)
        except VerifyException as error:
            _fail(op, error)


def verify_dominance(module: ModuleOp) -> None:
    """Raise IllFormed if a value is used where it is not visible. xDSL does not check this.

    A value is visible to later operations in its block, to the blocks that its block dominates, and
    in regions nested in either, except below an operation that is isolated from above.
    """
    for region in module.regions:
        _verify_region(region, set())


def _fail(op: Operation, problem: object) -> NoReturn:
    raise IllFormed(f"{op.name} at {place(op)}: {problem}", op)


@cache
def _sped_up(op_class: type[Operation]) -> None:
    speed_up_check(op_class)


def _verify_operations(module: ModuleOp) -> None:
    for kind in {type(op) for op in operations(module)}:
        _sped_up(kind)
    if _passes_all_checks(module):
        return
    try:
        module.verify()
    except FOUND as error:
        problem: Exception = error
    else:
        return
    # xDSL's error contains the whole module, but not which operation is wrong. Look for it.
    for op in module.walk(region_first=True):
        try:
            op.verify(verify_nested_ops=False)
        except FOUND as error:
            # If isolation is broken, the operation to blame is the nested one that breaks it.
            if op.has_trait(IsolatedFromAbove, value_if_unregistered=False):
                verify_dominance(module)
            _fail(op, _said(op, error))
    # No operation is wrong by itself: a block is empty, or has the wrong parent.
    _fail(module, problem)


def _said(op: Operation, error: Exception) -> object:
    """What is wrong with an operation. Raises the error if it shows a mistake of abele's own."""
    if isinstance(error, VerifyException | ValueError):
        return error
    if not type(op).__module__.startswith("xdsl."):
        raise error
    return f"xDSL's check of it ends with {type(error).__name__}: {error}"


def _passes_all_checks(op: Operation) -> bool:
    """Whether an operation and those nested in it surely pass xDSL's checks.

    Makes the same checks faster, without preparing error messages. False means that xDSL has to
    check: something is wrong, or a region has several blocks.
    """
    if successors_of(op) or ErasedSSAValue in map(type, operands_of(op)):
        return False
    for region in op.regions:
        if region.parent is not op or len(region.blocks) > 1:
            return False
        for block in region.blocks:
            last = block.last_op
            ends = op.has_trait(NoTerminator) or (last is not None and last.has_trait(IsTerminator))
            if block.parent is not region or not ends:
                return False
            each = block.first_op
            while each is not None:
                if each.parent is not block or not _passes_all_checks(each):
                    return False
                each = each.next_op
    try:
        verify_if_changed(op)
    except FOUND:
        return False
    return True


def _verify_region(region: Region, visible: set[int]) -> None:
    """Check the values in a region.

    Values hash by identity too, but in Python.

    Args:
        visible: the identities of those that it may use.
    """
    blocks = tuple(region.blocks)
    if len(blocks) == 1:
        _verify_block(blocks[0], visible)
        return
    dominance = DominanceInfo(region)
    for block in blocks:
        above = {
            value
            for other in blocks
            if dominance.strictly_dominates(other, block)
            for value in _values(other)
        }
        visible |= above
        _verify_block(block, visible)
        visible -= above


def _values(block: Block) -> list[int]:
    return [*map(id, block.args), *(id(result) for op in block.ops for result in op.results)]


def _verify_block(block: Block, visible: set[int]) -> None:
    visible.update(map(id, block.args))
    made = [*map(id, block.args)]
    op = block.first_op
    while op is not None:
        if not visible.issuperset(map(id, operands_of(op))):
            index, operand = next((i, v) for i, v in enumerate(op.operands) if id(v) not in visible)
            _fail(op, f"operand {index}{_hint(operand)} {_absence(operand, op)}")
        if op.regions:
            isolated = op.has_trait(IsolatedFromAbove, value_if_unregistered=False)
            for region in op.regions:
                _verify_region(region, set() if isolated else visible)
        results = [*map(id, op.results)]
        visible.update(results)
        made += results
        op = op.next_op
    visible.difference_update(made)


def _hint(value: SSAValue) -> str:
    return f" (%{value.name_hint})" if value.name_hint else ""


def _absence(value: SSAValue, user: Operation) -> str:
    """Why a value is not visible to a user."""
    try:
        owner = value.owner
    except ValueError:
        # The parser has met its name, and no definition.
        return "is defined nowhere"
    block = owner if isinstance(owner, Block) else owner.parent
    if block is None or block.get_toplevel_object() is not user.get_toplevel_object():
        return "is not in this module"
    ancestor = block.find_ancestor_op_in_block(user)
    if ancestor is not None:
        if isinstance(owner, Operation) and not owner.is_before_in_block(ancestor):
            return "is used before its definition"
        return "is defined outside an operation isolated from above"
    region = block.parent
    if region is not None and region.find_ancestor_block_in_region(_block(user)) is not None:
        return "is defined in a block that does not dominate this one"
    return "is defined inside a region that this operation is not in"


def _block(op: Operation) -> Block:
    block = op.parent
    assert block is not None
    return block
