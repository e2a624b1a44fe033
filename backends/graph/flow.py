"""The values that reach each operand, through copies, branches and loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects import func
from xdsl.ir import Block, Operation

from ...dialects import control
from ...dialects.tile import ComputeSetOp, CopyOp, InputOp, SuperstepOp, VerticesOp
from ...dialects.variable import Variable
from ...ir.errors import InputError
from ...ir.geometry.space import Space
from ...ir.limits import NESTED_LOOPS
from ...ir.provenance import place
from ...ir.upstream import ModuleOp
from ..price import ENTRY, callee_of, functions_of, operands_of, variables_of


@dataclass(frozen=True)
class Way:
    """One way in which a value reaches a variable.

    producer: the vertex set, host input or variable that the value comes from. moves: of the copies
    that it passed through, in order. rounds: the numbers of the loops that carried it round.
    result: which result of the vertex set it is.
    """

    producer: Operation
    moves: tuple[Space, ...] = ()
    rounds: frozenset[int] = frozenset()
    result: int = 0


Ways = frozenset[Way]
State = dict[str, Ways]
"""For each variable, the ways in which a value may have reached it."""


@dataclass
class Flow:
    """Follows the program and records the ways that lead to each operand of each vertex set.

    loops: how many were followed. depth: how many are being followed. calls: the states after
    calls, by function and the state of its variables before. touched: the variables of functions.
    """

    variables: Mapping[str, Variable]
    functions: Mapping[str, func.FuncOp]
    reads: dict[tuple[VerticesOp, int], dict[Way, None]] = field(
        default_factory=dict[tuple[VerticesOp, int], dict[Way, None]]
    )
    vertices: dict[VerticesOp, None] = field(default_factory=dict[VerticesOp, None])
    copies: dict[CopyOp, None] = field(default_factory=dict[CopyOp, None])
    loops: int = 0
    depth: int = 0
    calls: dict[tuple[str, frozenset[tuple[str, Ways]]], State] = field(
        default_factory=dict[tuple[str, frozenset[tuple[str, "Ways"]]], "State"], repr=False
    )

    touched: dict[str, frozenset[str]] = field(
        default_factory=dict[str, frozenset[str]], repr=False
    )

    def run(self) -> None:
        """Follow the program from its entry. Raises InputError for an unknown variable."""
        state: State = {
            v.symbol: frozenset([Way(v)]) for v in self.variables.values() if v.is_resident
        }
        self._block(self.functions[ENTRY].body.block, state, (ENTRY,))

    def _block(self, block: Block, state: State, calling: tuple[str, ...]) -> State:
        for op in block.ops:
            state = self._operation(op, state, calling)
        return state

    def _operation(self, op: Operation, state: State, calling: tuple[str, ...]) -> State:
        match op:
            case VerticesOp():
                operands_of(op, self.variables)
                self.vertices[op] = None
                for i, source in enumerate(op.sources):
                    self.reads.setdefault((op, i), {}).update(
                        dict.fromkeys(state.get(source, frozenset()))
                    )
                made = enumerate(op.destinations)
                return {**state, **{n: frozenset([Way(op, result=i)]) for i, n in made}}
            case CopyOp():
                operands_of(op, self.variables)
                self.copies[op] = None
                return {**state, op.destination: _copied(op, state)}
            case InputOp():
                return {**state, op.writes.string_value(): frozenset([Way(op)])}
            case SuperstepOp() | ComputeSetOp():
                return self._block(op.body.block, state, calling)
            case control.IfOp():
                branches = [self._block(r.block, state, calling) for r in (op.then, op.otherwise)]
                return _joined(*branches)
            case control.RepeatOp():
                if op.turns < 2:
                    return self._block(op.body.block, state, calling)
                return self._loop(None, op.body.block, state, calling)
            case control.WhileOp():
                return self._loop(op.test.block, op.body.block, state, calling)
            case func.CallOp():
                callee = callee_of(op, self.functions, calling)
                name = callee.sym_name.data
                # A call that begins in the same state finds the same ways again.
                own = {each: state[each] for each in self._names(name) if each in state}
                key = name, frozenset(own.items())
                if key not in self.calls:
                    self.calls[key] = self._block(callee.body.block, own, (*calling, name))
                return {**state, **self.calls[key]}
            case _:
                return state

    def _names(self, function: str) -> frozenset[str]:
        """The variables that a function and the functions it calls read or write."""
        known = self.touched.get(function)
        if known is None:
            # This ends a recursion, which callee_of refuses later.
            known = self.touched[function] = frozenset()
            found: set[str] = set()
            for op in self.functions[function].walk():
                match op:
                    case VerticesOp() | CopyOp():
                        found.update(op.sources, op.destinations)
                    case InputOp():
                        found.add(op.writes.string_value())
                    case func.CallOp() if op.callee.string_value() in self.functions:
                        found |= self._names(op.callee.string_value())
                    case _:
                        pass
            known = self.touched[function] = frozenset(found)
        return known

    def _loop(
        self, test: Block | None, body: Block, state: State, calling: tuple[str, ...]
    ) -> State:
        """The state after a loop, which ends after its test if it has one, else after its body."""
        self.loops += 1
        number = self.loops
        self.depth += 1
        if self.depth > NESTED_LOOPS.most:
            # Each loop is followed twice or more in each pass through the loop around it.
            loop = body.parent_op()
            where = "" if loop is None else f"{loop.name} at {place(loop)}: "
            raise InputError(NESTED_LOOPS.refusal(f"{where}nested too deeply"))
        entering = state
        while True:
            tested = self._block(test, entering, calling) if test else entering
            after = self._block(body, tested, calling)
            again = _carried(after, state, entering, number)
            if again == entering:
                self.depth -= 1
                return _left(tested if test else after, number)
            entering = again


def _copied(op: CopyOp, state: State) -> Ways:
    spaces: Sequence[Space | None] = op.spaces or (None,) * len(op.sources)
    return frozenset(
        replace(way, moves=(*way.moves, space) if space else way.moves)
        for source, space in zip(op.sources, spaces, strict=True)
        for way in state.get(source, frozenset())
    )


def _joined(*states: State) -> State:
    names = {name for state in states for name in state}
    return {name: frozenset().union(*(s.get(name, frozenset()) for s in states)) for name in names}


def _carried(after: State, before: State, entering: State, loop: int) -> State:
    """The state that may enter the next iteration: that before this one, and that after it.

    A producer's value is followed round the loop once; its moves in later iterations are not.
    """
    result = dict(entering)
    for name, ways in after.items():
        old = entering.get(name, frozenset())
        known = {w.producer for w in old if loop in w.rounds}
        new = {
            replace(w, rounds=w.rounds | {loop})
            for w in ways - before.get(name, frozenset())
            if w.producer not in known
        }
        result[name] = old | new
    return result


def _left(state: State, loop: int) -> State:
    return {
        name: frozenset(replace(w, rounds=w.rounds - {loop}) for w in ways)
        for name, ways in state.items()
    }


def flow_of(module: ModuleOp) -> Flow:
    """The flow of a tile or exchange module.

    Raises InputError if the module has no entry function or names an unknown variable.
    """
    flow = Flow(variables_of(module), functions_of(module))
    flow.run()
    return flow


def set_of(op: VerticesOp) -> SuperstepOp | ComputeSetOp | None:
    """The superstep or compute set that a vertex set is in."""
    outer = op.parent_op()
    return outer if isinstance(outer, SuperstepOp | ComputeSetOp) else None
