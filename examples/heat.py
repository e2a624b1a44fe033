# heat.py
"""Heat that spreads over a plate: one step of 2-D diffusion."""

from abele.tools.extensions import codelet, ulps


def back(emit, op, gradients):
    """What a cell gives to its neighbours is what they give to it: a step is its own gradient."""
    return {0: emit(step(gradients[0], k=op.properties["k"].value.data))}


@codelet(
    space="y, x, d = 3 whole, e = 3 whole",
    reads={"t": "y + d - 1 edge, x + e - 1 edge"},
    writes={"out": "y, x"},
    # Five loads and a store on one pipe, six instructions of floats beside them on the other.
    cycles=lambda n: 24 + 7 * n,
    bound=ulps(8, of="largest"),
    # A step moves a cell by at most as much as the cells around it are moved.
    sensitivity=1.0,
    gradient=back,
)
def step(t, *, k=0.1):
    """Moves each cell towards the mean of its four neighbours. The edge keeps its heat."""
    middle = t[:, 1, 1]
    around = t[:, 0, 1] + t[:, 2, 1] + t[:, 1, 0] + t[:, 1, 2]
    return middle + k * (around - 4 * middle)
