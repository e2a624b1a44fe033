"""The operations of a module, in a fraction of the time that xDSL's own walk takes."""

from __future__ import annotations

from xdsl.ir import Operation


def operations(root: Operation) -> list[Operation]:
    """An operation and all inside it, each before those inside itself: as walk() gives them, but
    as they are now, whatever happens to them meanwhile."""
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
