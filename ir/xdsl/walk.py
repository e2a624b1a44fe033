"""A faster version of xDSL's walk over operations."""

from __future__ import annotations

from xdsl.ir import Operation


def operations(root: Operation) -> list[Operation]:
    """An operation and all nested ones in the order of walk(): each before those nested in it.

    The list is complete before it is returned, so the caller may change the program meanwhile.
    """
    found: list[Operation] = [root]
    for region in root.regions:
        for block in region.blocks:
            op = block.first_op
            while op is not None:
                if op.regions:
                    found += operations(op)
                else:
                    found.append(op)
                op = op.next_op
    return found
