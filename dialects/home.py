"""Homes: a layout and an address for a state or constant of nn, decided before planning.

A state or constant may have these attributes:

- `home`: the layout of its storage, whatever layout its readers want. Readers that want another
  layout copy from it, so each element must lie in one block, not counting replicas;
- `address`: the address of its block on each tile of that layout;
- `reload`: cycles per run. With it, the two others are wishes: plan-splits gives them up if the
  program gets faster by more than these cycles, and allocate if they do not fit.

    nn.state @w : tensor<8x4xf32> = <"..."> {home = #abele.layout<[8 by 4, 4] (d0, d1) of [8, 4]>,
    address = 1024 : i64}

A conversion copies the address to the lowered operation, and the layout into its type. So
`partition` and `tile` have `address` and `reload` only.

The home of a state may also be remote memory. Then the tiles hold it only while it is used.

    nn.state @m : tensor<8x4xf32> = <"..."> {home = "remote"}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Operation

from ..ir.geometry.layout import Layout
from ..ir.upstream import VerifyException
from .abele import LayoutAttr
from .variable import ALIGNMENT

HOME = "home"
ADDRESS = "address"
RELOAD = "reload"
REMOTE = "remote"
"""The home of a state that lies in remote memory."""

MOST = 1 << 48
"""The largest address and reload. Sums of addresses and sizes then fit in 64 bits."""


@dataclass(frozen=True)
class Home:
    """The required storage of a state or constant.

    Attributes:
        layout: the layout of its blocks.
        address: the address of its block on each tile; None for any.
        reload: the cycles per run for which layout and address may be given up; None if they may
            not.
    """

    layout: Layout
    address: int | None = None
    reload: int | None = None

    @property
    def attributes(self) -> dict[str, Attribute]:
        """The attributes that give an operation of nn this home."""
        found: dict[str, Attribute] = {HOME: LayoutAttr(self.layout)}
        for name, value in ((ADDRESS, self.address), (RELOAD, self.reload)):
            if value is not None:
                found[name] = IntegerAttr(value, i64)
        return found


def home_of(op: Operation) -> Home | None:
    """The home on the tiles that a verified operation of nn requires; None if it requires none."""
    layout = op.attributes.get(HOME)
    if not isinstance(layout, LayoutAttr):
        return None
    return Home(layout.data, number_of(op, ADDRESS), number_of(op, RELOAD))


def is_remote(op: Operation) -> bool:
    """Whether the home of a verified state of nn or partition is remote memory."""
    return op.attributes.get(HOME) == StringAttr(REMOTE)


def keep_remote(op: Operation) -> None:
    """Let remote memory be the home of a state."""
    drop_home(op)
    op.attributes[HOME] = StringAttr(REMOTE)


def handed_down(op: Operation) -> Mapping[str, Attribute]:
    """The attributes that a conversion copies to the lowered state or constant: address and
    reload, and a home in remote memory."""
    names = (ADDRESS, RELOAD, *([HOME] if is_remote(op) else []))
    return {name: op.attributes[name] for name in names if name in op.attributes}


def drop_home(op: Operation) -> None:
    """Remove the home of a state or constant, so that it may lie anywhere."""
    for name in (HOME, ADDRESS, RELOAD):
        op.attributes.pop(name, None)


def verify_home(
    op: Operation, what: str, shape: tuple[int, ...], *, may_be_remote: bool = False
) -> None:
    """Check the home attributes of a state or constant. Raises VerifyException.

    Args:
        what: the operation's name in messages.
        shape: the shape of its tensor.
        may_be_remote: whether remote memory may be the home.
    """
    for name in (ADDRESS, RELOAD):
        if name in op.attributes and HOME not in op.attributes:
            raise VerifyException(f"{what}: {name} without {HOME}; add {HOME} = #abele.layout<...>")
    verify_numbers(op, what)
    if HOME not in op.attributes:
        return
    given = op.attributes[HOME]
    if may_be_remote and is_remote(op):
        for name in (ADDRESS, RELOAD):
            if name in op.attributes:
                raise VerifyException(f"{what}: {name} with {HOME} = {given}; need one of them")
        return
    if not isinstance(given, LayoutAttr):
        other = f', or "{REMOTE}"' if may_be_remote else ""
        raise VerifyException(f"{what}: {HOME} = {given}; need #abele.layout<...>{other}")
    layout = given.data
    if prod(layout.shape) != prod(shape):
        raise VerifyException(
            f"{what}: {HOME} of {list(layout.shape)} for a tensor of {list(shape)}"
        )
    if not layout.is_partition:
        raise VerifyException(
            f"{what}: {HOME} {given.text()}: blocks overlap; need one owner per element, so that "
            "readers can copy from it"
        )


def verify_numbers(op: Operation, what: str = "") -> None:
    """Check the address and the reload of an operation of any level. Raises VerifyException.

    Args:
        what: the operation's name in messages; none if the caller adds it.
    """
    prefix = f"{what}: " if what else ""
    for name in (ADDRESS, RELOAD):
        value = op.attributes.get(name)
        if value is None:
            continue
        if not isinstance(value, IntegerAttr) or not 0 <= value.value.data <= MOST:
            raise VerifyException(
                f"{prefix}{name} = {value}; need a number from 0 to {MOST}, as 8 : i64"
            )
        if name == ADDRESS and value.value.data % ALIGNMENT:
            raise VerifyException(
                f"{prefix}{name} {value.value.data}; need a multiple of {ALIGNMENT}"
            )


def number_of(op: Operation, name: str) -> int | None:
    """The address or the reload of a verified operation of any level; None if it has none."""
    value = op.attributes.get(name)
    return value.value.data if isinstance(value, IntegerAttr) else None
