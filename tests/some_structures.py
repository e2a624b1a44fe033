"""Small structures that several tests evaluate."""

from abele.dialects.structured import Body, Stage, Structure, extras_of
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space, identity_map


def vector_product(k: int) -> Structure:
    """The product of a matrix of 3 rows and a vector of k elements."""
    dims = (Dim("m", 3), Dim("k", k, "reduction"))
    return Structure(
        Space(
            dims,
            (
                AccessMap((AxisMap(3, ((0, 1),)), AxisMap(k, ((1, 1),)))),
                AccessMap((AxisMap(k, ((1, 1),)),)),
            ),
            (AccessMap((AxisMap(3, ((0, 1),)),)),),
        ),
        Body("mul", "sum"),
    )


def pointwise(stages: tuple[Stage, ...]) -> Structure:
    """Stages after 4 elements that are taken as they are."""
    access = identity_map((0,), (4,))
    count = 1 + extras_of(stages)
    space = Space((Dim("x", 4),), (access,) * count, (access,))
    return Structure(space, Body("identity", None, (), stages))
