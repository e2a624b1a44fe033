"""Let products read and write tensors where these lie before they are moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.ir import SSAValue

from ..dialects import nn
from ..dialects.levels import NN
from ..dialects.nn.generic import is_view
from ..dialects.nn.group import GROUP
from ..ir.edit import Edit, source_at
from ..ir.geometry.space import AccessMap, AxisMap
from ..ir.rewriting import may_rewrite
from ..ir.upstream import Context, InsertPoint, ModuleOp, ModulePass

PLAN = "plan"
"""The attribute of an operation that is planned already."""


@dataclass(frozen=True)
class ReadThrough(ModulePass):
    """Let products read and write tensors where these lie before they are moved. nn -> nn.

    A product of transposed tensors is one with other maps, and so is one of slices, also of slices
    whose axes are split, and one whose result alone is transposed. Heads of attention are such
    products: a tile gets their rows from the tensor itself, and no copy of it is made first.

        %1 = nn.transpose %0 [1, 0]    %2 = nn.compute(%x, %0)
        %2 = nn.matmul %x, %1              space <[m = 1, n = 8, k = 4 reduction]
                                           (0, k) of [1, 4], (n, k) of [8, 4] -> (0, n) of [1, 8]>
                                           body <mul sum>

    A transposed tensor that something else reads too is computed in any case, so products read it
    as well.
    """

    name = "read-through"
    takes = NN
    skips_other_levels = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        for each in moved_products(op):
            if may_rewrite():
                _rewrite(each)


def moved_products(module: ModuleOp) -> list[nn.MatMulOp]:
    """The products that read transposed tensors, or whose result is transposed."""
    return [
        op
        for op in module.walk()
        if isinstance(op, nn.MatMulOp)
        and not {GROUP, PLAN} & op.attributes.keys()
        # Only nn.matmul and nn.conv may multiply 8-bit floats.
        and not op.structure().body.is_scaled_product
        and (any(map(_movement, op.operands)) or _transposed(op) is not None)
    ]


def _movement(value: SSAValue) -> nn.TransposeOp | nn.SliceOp | None:
    """The movement that makes a value, if only products read it; else None."""
    op = value.owner
    if not isinstance(op, nn.TransposeOp | nn.SliceOp):
        return None
    readers = [use.operation for use in value.uses]
    only = all(isinstance(r, nn.MatMulOp) and GROUP not in r.attributes for r in readers)
    return op if only else None


def _source(value: SSAValue, access: AccessMap) -> tuple[SSAValue, AccessMap]:
    """The value that a map reads through movements, and the map into it."""
    op = _movement(value)
    while isinstance(op, nn.TransposeOp | nn.SliceOp | nn.ReshapeOp):
        if isinstance(op, nn.TransposeOp):
            # Once its axes are split, they are in another order than those of the tensor.
            through = (
                _through(access, nn.values_of(op.permutation))
                if access.shape == nn.shape_of(op.result)
                else None
            )
        elif isinstance(op, nn.SliceOp):
            through = _shifted(access, op)
        else:
            splits = is_view(nn.shape_of(op.operand), access.shape)
            through = access if splits else None
        if through is None:
            break
        value, access = op.operand, through
        op = value.owner if value.has_one_use() else None
    return value, access


def _shifted(access: AccessMap, op: nn.SliceOp) -> AccessMap | None:
    """The map into the operand of a slice; None if steps are not 1, or a part of an axis that is
    split begins or ends within another one."""
    if any(step != 1 for step in nn.values_of(op.steps)):
        return None
    axes, rest = list[AxisMap](), list(access.axes)
    sizes = zip(
        nn.shape_of(op.operand), nn.shape_of(op.result), nn.values_of(op.starts), strict=True
    )
    for whole, size, start in sizes:
        first, *inner = rest[:1]
        covered = 1
        del rest[:1]
        while first.size * covered < size and rest:
            inner.append(rest.pop(0))
            covered *= inner[-1].size
        if first.size * covered != size or whole % covered or start % covered:
            return None
        offset = first.offset + first.divisor * (start // covered)
        axes += [replace(first, size=whole // covered, offset=offset), *inner]
    # A view may end with axes of one element.
    return AccessMap((*axes, *rest), access.fill) if all(a.size == 1 for a in rest) else None


def _transposed(op: nn.MatMulOp) -> nn.TransposeOp | None:
    """The transpose that is the only reader of a product; None if there is none."""
    user = op.result.get_user_of_unique_use()
    return user if isinstance(user, nn.TransposeOp) and user.parent is op.parent else None


def _through(access: AccessMap, order: Sequence[int]) -> AccessMap:
    """The map into a tensor of which another one is the transpose.

    Args:
        access: the map into the transpose.
        order: its axis i is axis order[i] of the tensor.
    """
    return AccessMap(tuple(access.axes[order.index(i)] for i in range(len(order))), access.fill)


def _rewrite(op: nn.MatMulOp) -> None:
    """Replace a product by one with other maps."""
    structure = op.structure()
    maps, read = list(structure.space.operands), tuple(dict.fromkeys(op.operands))
    inputs = list(op.operands)
    for i, value in enumerate(op.operands):
        inputs[i], maps[i] = _source(value, maps[i])
    last = _transposed(op)
    written = structure.space.results[0]
    if last is not None:
        order = nn.values_of(last.permutation)
        written = AccessMap(tuple(written.axes[i] for i in order), written.fill)
    space = replace(structure.space, operands=tuple(maps), results=(written,))
    ends = op if last is None else last
    with Edit(source_at("read through transposes", _rewrite), op) as edit:
        made = nn.ComputeOp(inputs, replace(structure, space=space), nn.tensor_of(ends.result))
        made.location = op.location
        edit.insert(made, InsertPoint.before(op))
        edit.replace(ends, [made.result])
        if ends is not op:
            edit.erase(op)
        # What moves tensors that nothing reads any more.
        for value in read:
            while isinstance(value.owner, nn.TransposeOp | nn.SliceOp | nn.ReshapeOp):
                last_reader, value = value.owner, value.owner.operand
                if not last_reader.result.uses:
                    edit.erase(last_reader)
