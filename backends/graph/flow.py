"""The possible contents of each operand of a program, through copies, branches and loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.ir import Block, Operation

from ...dialects import control
from ...dialects.steps import Arrival, Copy, Superstep, Vertices
from ...dialects.tile import ComputeSetOp
from ...dialects.variable import Variable
from ...ir.provenance import place
from ...ir.support.errors import InputError
from ...ir.support.limits import NESTED_LOOPS
from ...ir.upstream import ModuleOp
from ...ir.well_known import ENTRY
from ..functions import callee_of, functions_of
from ..prices.price import operands_of, variables_of
from .contents import NO_PRODUCERS, Content, Contents, Producers

State = dict[str, Content | None]
"""The possible content of each variable; None for a variable that nothing has written."""

Reads = dict[tuple[Vertices, int], dict[Content, None]]
"""The possible contents of each operand of each vertex set, over all times that it is reached."""

Called = tuple[State, Reads]
"""The contents of a function's variables after a call, and those of its operands during it."""


@dataclass
class Flow:
    """Follows a program, and records the possible contents of each operand of each vertex set.

    Attributes:
        contents: makes them.
        loops: the numbers of loops.
        depth: how many loops are being followed.
        calls: results of calls, by function and contents of its variables before.
        names: the variables that a block and the functions called in it use.
    """

    variables: Mapping[str, Variable]
    functions: Mapping[str, func.FuncOp]
    reads: Reads = field(default_factory=Reads)
    vertices: dict[Vertices, None] = field(default_factory=dict[Vertices, None])
    copies: dict[Copy, None] = field(default_factory=dict[Copy, None])
    contents: Contents = field(default_factory=Contents)
    loops: dict[Operation, int] = field(default_factory=dict[Operation, int], repr=False)
    depth: int = 0
    calls: dict[tuple[str, frozenset[tuple[str, Content | None]]], Called] = field(
        default_factory=dict[tuple[str, frozenset[tuple[str, Content | None]]], Called], repr=False
    )
    names: dict[Block, frozenset[str]] = field(
        default_factory=dict[Block, frozenset[str]], repr=False
    )

    def run(self) -> None:
        """Follow the program from its entry. Raises InputError for an unknown variable."""
        state: State = {
            v.symbol: self.contents.made(v) for v in self.variables.values() if v.is_resident
        }
        self._block(self.functions[ENTRY].body.block, state, (ENTRY,))

    def _block(self, block: Block, state: State, calling: tuple[str, ...]) -> None:
        """Follow a block, and change `state` to the contents after it."""
        for op in block.ops:
            self._operation(op, state, calling)

    def _operation(self, op: Operation, state: State, calling: tuple[str, ...]) -> None:
        match op:
            case Vertices():
                operands_of(op, self.variables)
                self.vertices[op] = None
                for i, source in enumerate(op.sources):
                    held = state.get(source)
                    self._record({(op, i): {held: None} if held else {}})
                state.update(
                    (name, self.contents.made(op, i)) for i, name in enumerate(op.destinations)
                )
            case Copy():
                operands_of(op, self.variables)
                self.copies[op] = None
                held = [state.get(source) for source in op.sources]
                state[op.destination] = (
                    self.contents.moved(held, op.spaces) if op.spaces else held[0]
                )
            case Arrival():
                state[op.destination] = self.contents.made(op)
            case Superstep() | ComputeSetOp():
                self._block(op.body.block, state, calling)
            case control.IfOp():
                branches = [
                    self._after(r.block, self._part(state, r.block), calling)
                    for r in (op.then, op.otherwise)
                ]
                touched = dict.fromkeys(name for branch in branches for name in branch)
                state.update(
                    (name, self.contents.either(b.get(name, state.get(name)) for b in branches))
                    for name in touched
                )
            case control.RepeatOp():
                if op.iterations < 2:
                    self._block(op.body.block, state, calling)
                else:
                    self._loop(op, None, op.body.block, state, calling)
            case control.WhileOp():
                self._loop(op, op.test.block, op.body.block, state, calling)
            case func.CallOp():
                self._call(op, state, calling)
            case _:
                pass

    def _after(self, block: Block, state: State, calling: tuple[str, ...]) -> State:
        """The state after a block."""
        after = dict(state)
        self._block(block, after, calling)
        return after

    def _part(self, state: State, *blocks: Block) -> State:
        """The contents of the variables that some blocks read or write."""
        return {name: state.get(name) for block in blocks for name in sorted(self._names(block))}

    def _record(self, reads: Reads) -> None:
        for operand, held in reads.items():
            self.reads.setdefault(operand, {}).update(held)

    def _call(self, op: func.CallOp, state: State, calling: tuple[str, ...]) -> None:
        callee = callee_of(op, self.functions, calling)
        name = callee.sym_name.data
        # A call with the same contents before gives the same contents after.
        own = self._part(state, callee.body.block)
        key = name, frozenset(own.items())
        if key not in self.calls:
            outside, self.reads = self.reads, {}
            after = self._after(callee.body.block, own, (*calling, name))
            self.calls[key] = after, self.reads
            self.reads = outside
        after, reads = self.calls[key]
        self._record(reads)
        state.update(after)

    def _names(self, block: Block) -> frozenset[str]:
        """The variables that a block and the functions it calls read or write."""
        known = self.names.get(block)
        if known is None:
            # This entry ends the recursion of a function that calls itself, which callee_of refuses
            # later.
            self.names[block] = frozenset()
            found: set[str] = set()
            for op in block.walk():
                match op:
                    case Vertices() | Copy():
                        found.update(op.sources, op.destinations)
                    case Arrival():
                        found.add(op.destination)
                    case func.CallOp() if op.callee.string_value() in self.functions:
                        found |= self._names(self.functions[op.callee.string_value()].body.block)
                    case _:
                        pass
            known = self.names[block] = frozenset(found)
        return known

    def _loop(
        self,
        op: Operation,
        test: Block | None,
        body: Block,
        state: State,
        calling: tuple[str, ...],
    ) -> None:
        """Follow a loop. It ends after its test if it has one, else after its body."""
        number = self.loops.setdefault(op, len(self.loops))
        self.depth += 1
        if self.depth > NESTED_LOOPS.most:
            # A nested loop is followed at least twice for each time its outer loop is followed.
            raise InputError(NESTED_LOOPS.refusal(f"{op.name} at {place(op)}: nested too deeply"))
        before = self._part(state, body, *([test] if test else []))
        entering = before
        while True:
            tested = self._after(test, entering, calling) if test else entering
            after = self._after(body, tested, calling)
            again = {
                name: self._entering(held, before[name], entering[name], number)
                for name, held in after.items()
            }
            if again == entering:
                break
            entering = again
        self.depth -= 1
        state.update(
            (name, held and self.contents.left(held, number))
            for name, held in (tested if test else after).items()
        )

    def _entering(
        self, after: Content | None, before: Content | None, entering: Content | None, loop: int
    ) -> Content | None:
        """The possible content of a variable before the next iteration.

        The value of a producer is followed around the loop once; its moves in later iterations are
        not.

        Args:
            after: the content after this iteration.
            before: before the loop.
            entering: before this iteration.
        """
        if after is None or after is before:
            return entering
        contents = self.contents
        unchanged = dict.fromkeys(contents.choices(before))
        new = contents.either(
            contents.along(path) for path in contents.choices(after) if path not in unchanged
        )
        if new is None:
            return entering
        known: Producers = NO_PRODUCERS
        if entering:
            origins = contents.origins(entering)
            known = frozenset(producer for producer, rounds in origins if loop in rounds)
        came = {producer for producer, _ in contents.origins(new)}
        if came <= known:
            return entering
        carried = contents.carried(contents.without(new, known & came), loop)
        return contents.either((entering, carried))


def flow_of(module: ModuleOp) -> Flow:
    """The flow of a tile or exchange module.

    Raises InputError if the module has no entry function or names an unknown variable.
    """
    flow = Flow(variables_of(module), functions_of(module))
    flow.run()
    return flow


def set_of(op: Vertices) -> Superstep | ComputeSetOp | None:
    """The superstep or compute set that a vertex set is in."""
    outer = op.parent_op()
    return outer if isinstance(outer, Superstep | ComputeSetOp) else None
