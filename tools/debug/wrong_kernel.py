"""Find the operation whose compiled kernel is wrong, by runs with NumPy's calls for some
operations.

The operations of a program are in order. The first n of them run as in a plain run, and the others
with right calls. If a run is right for n = 0 and wrong for all operations, there is an n at which
one more operation makes it wrong, and bisection finds it. Nothing is read during a run, since a
plain run does not write all bytes; runs are compared by their outputs and states. So operations in
loops and branches are found like all others.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from xdsl.ir import Operation

from ...backends.host.kernel_names import kernels_in
from ...backends.host.mixed import CallKind, CallKindOf, mixed_binder
from ...backends.host.switch import PLAIN, VARIABLE
from ...backends.machine import Machine
from ...backends.op_check import Finding
from ...backends.target import Target
from ...dialects.steps import OUTSIDE, Arrival, Copy, Departure, Superstep, Vertices
from ...ir.provenance import origin, place
from ...ir.upstream import ModuleOp
from ..driver.arrays import Array
from .machine_results import Difference, Results, difference, first_states, results_of

WORTH_COLLECTING = 1 << 26
"""The smallest memory of all tiles, in bytes, for which a garbage collection is worth its time."""

RUNS = 2
"""The number of runs of a probe: the second run reads data that the first run has packed."""

FUSED_STEPS = 2
"""The reach of fused calls: from vertices back to the move that they read, and to its writers."""

REPORT = (
    f"Please report this line with what `abele doctor` prints. {VARIABLE}={PLAIN} runs the program "
    "without compiled kernels"
)
"""The advice to a user about a wrong kernel."""


@dataclass(frozen=True)
class Bound:
    """An operation and the kernels that its calls run.

    Attributes:
        superstep: its name.
        node: the operation's node, or its line.
        variable: the variable that it writes, or hands to the host.
        sizes: of its compute or move, in words.
        kernels: their tasks.
    """

    op: str
    superstep: str
    node: str
    variable: str
    sizes: str
    kernels: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.op} at {self.node} in superstep @{self.superstep} ({self.sizes}, to "
            f"@{self.variable}; kernels: {', '.join(self.kernels) or 'none'})"
        )


@dataclass(frozen=True)
class WrongKernel:
    """An operation whose compiled calls give different bits than NumPy's calls, which define them.

    Attributes:
        fused: the operations that a plain run must fuse with it for the results to be wrong.
        way: the kind of the wrong calls.
        differs: the change in the results.
    """

    wrong: Bound
    fused: tuple[Bound, ...]
    way: CallKind
    differs: Difference

    def __str__(self) -> str:
        calls = "the plain run" if self.way is CallKind.FUSED else "a run that writes every byte"
        others = f", fused with {' and '.join(map(str, self.fused))}" if self.fused else ""
        return (
            f"a compiled kernel is wrong, not the model or a pass: {self.wrong}{others}: "
            f"{self.differs.words(calls, 'one with NumPy for this operation')}. {REPORT}"
        )


def operations_in_order(module: ModuleOp) -> list[Operation]:
    """The operations of all supersteps that move, compute, or exchange tensors with the host, in
    the order of the program."""
    return [op for step in module.walk() if isinstance(step, Superstep) for op in _ordered(step)]


def _ordered(step: Superstep) -> Iterator[Operation]:
    ops = list(step.body.block.ops)
    for kinds in ((Copy, *OUTSIDE), (Vertices,)):
        yield from (op for op in ops if isinstance(op, kinds))


@dataclass
class KernelSearch:
    """Runs one program with different kinds of calls for its operations.

    The machine is loaded anew for each run.

    Attributes:
        module: of the exchange level.
        trimmed: removes rows that belong to no result from the outputs.
    """

    module: ModuleOp
    target: Target
    inputs: Mapping[str, Array]
    trimmed: Callable[[Mapping[str, Array]], Mapping[str, Array]] = dict

    def first_wrong(self, right: Results, rest: CallKind) -> WrongKernel | None:
        """The operation that makes a plain run differ from a run with these results.

        If both runs are compiled, either may be wrong at that operation. None if a repeated plain
        run does not differ.

        Args:
            rest: the way of all operations in the latter run.
        """
        ops = operations_in_order(self.module)
        at = {op: i for i, op in enumerate(ops)}

        def ways(count: int, last: CallKind = CallKind.FUSED) -> CallKindOf:
            """The ways if the first `count` operations have the ways of a plain run, the last of
            them `last`.
            """

            def way_of(op: Operation) -> CallKind:
                if at[op] == count - 1:
                    return last
                return CallKind.FUSED if at[op] < count else rest

            return way_of

        if self._differs(ways(len(ops)), right) is None or self._differs(ways(0), right):
            return None
        low, high = 0, len(ops)
        while high - low > 1:
            middle = (low + high) // 2
            if self._differs(ways(middle), right) is None:
                low = middle
            else:
                high = middle
        by_numpy = self._run(ways(high, CallKind.NUMPY))[0]
        differs = self._differs(ways(high), by_numpy)
        if differs is not None:
            return self._blamed(ops[high - 1], CallKind.FUSED, by_numpy, differs)
        differs = self._differs(ways(high - 1), by_numpy)
        if differs is None:
            return None
        return self._blamed(ops[high - 1], CallKind.COMPILED, by_numpy, differs)

    def first_unlike_numpy(self) -> WrongKernel | None:
        """The operation that makes a plain run differ from a run of NumPy's calls alone."""
        return self.first_wrong(self._run(lambda _: CallKind.NUMPY)[0], CallKind.NUMPY)

    def plain_differs(self, right: Results) -> Difference | None:
        """The difference between plain runs and a run with these results."""
        return self._differs(lambda _: CallKind.FUSED, right)

    def at_finding(self, found: Finding) -> WrongKernel | None:
        """The operation of a finding, if a run with NumPy's calls for it has different results."""
        for op in operations_in_order(self.module):
            step = op.parent_op()
            named = isinstance(step, Superstep) and step.sym_name.data == found.superstep
            if named and isinstance(op, Copy | Vertices) and found.variable in op.destinations:
                return self._if_wrong(op)
        return None

    def _if_wrong(self, op: Operation) -> WrongKernel | None:
        by_numpy = self._run(lambda each: CallKind.NUMPY if each is op else CallKind.FUSED)[0]
        differs = self._differs(lambda _: CallKind.FUSED, by_numpy)
        return None if differs is None else self._blamed(op, CallKind.FUSED, by_numpy, differs)

    def _differs(self, way_of: CallKindOf, right: Results) -> Difference | None:
        found = (difference(each, right) for each in self._run(way_of))
        return next((each for each in found if each is not None), None)

    def _run(self, way_of: CallKindOf) -> list[Results]:
        """The results of several runs of one machine, each from the first states."""
        machine = Machine(self.module, self.target, binder=mixed_binder(way_of))
        found: list[Results] = []
        for _ in range(RUNS):
            for name, array in first_states(machine).items():
                machine.write(name, array)
            got = results_of(machine, self.inputs)
            found.append(got if got.fault else replace(got, outputs=self.trimmed(got.outputs)))
        del machine
        if self.target.tiles * self.target.bytes_per_tile > WORTH_COLLECTING:
            gc.collect()
        return found

    def _blamed(
        self, op: Operation, way: CallKind, right: Results, differs: Difference
    ) -> WrongKernel:
        fused = self._fused_with(op, right) if way is CallKind.FUSED else []
        machine = Machine(self.module, self.target, binder=mixed_binder(lambda _: way))
        calls = {each: calls for each, calls, _ in machine.bound()}

        def bound(op: Operation) -> Bound:
            step, variable = op.parent_op(), machine.variables[_written(op)]
            assert isinstance(step, Superstep)
            sizes = f"shape {list(variable.tensor.get_shape())}"
            if isinstance(op, Vertices):
                dims = op.structure().space.dims
                sizes = ", ".join(f"{dim.name} = {dim.size}" for dim in dims) or sizes
            return Bound(
                op.name,
                step.sym_name.data,
                origin(op) or place(op),
                variable.symbol,
                f"{variable.dtype.name}, {sizes}",
                kernels_in(calls.get(op, [])),
            )

        return WrongKernel(bound(op), tuple(map(bound, fused)), way, differs)

    def _fused_with(self, op: Operation, right: Results) -> list[Operation]:
        """The operations that make an operand of `op`, and without whose fusion the results are
        right.
        """
        writers = {
            name: each
            for each in operations_in_order(self.module)
            if isinstance(each, Copy | Vertices)
            for name in each.destinations
        }
        before: dict[Operation, None] = {}
        reached = [op]
        for _ in range(FUSED_STEPS):
            names = [n for o in reached if isinstance(o, Copy | Vertices) for n in o.sources]
            reached = [writers[name] for name in names if name in writers]
            before |= dict.fromkeys(reached)
        return [
            each
            for each in before
            if each is not op
            and self._differs(
                lambda o, each=each: CallKind.COMPILED if o is each else CallKind.FUSED, right
            )
            is None
        ]


def _written(op: Operation) -> str:
    """The variable that an operation writes, or whose tensor it hands to the outside."""
    if isinstance(op, Arrival):
        return op.destination
    if isinstance(op, Departure):
        return op.source
    assert isinstance(op, Copy | Vertices)
    return op.destinations[0]
