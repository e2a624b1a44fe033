"""Moves loads of states from loops, branches and called functions to the body of @main."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation, SSAValue

from ...dialects import nn
from ...dialects.control import run_around
from ...ir.edit import Edit
from ...ir.provenance import place
from ...ir.support.errors import InputError
from ...ir.upstream import InsertPoint, ModuleOp
from .control_flow import function_of

Loads = tuple[nn.LoadOp, ...]


def load_in_front(module: ModuleOp, edit: Edit) -> None:
    """Load all states in the body of @main, also those loaded in its loops, branches and functions.

    Gradients are computed for values of this body, so a state that is loaded elsewhere would have
    none. A state has one value during a run, so the place of its load does not matter. A called
    function gets its states as further operands. Raises InputError for a function that calls
    itself, and for a state that a loop of runs stores to, because its iterations load different
    values.
    """
    in_front = _InFront(module, edit)
    called = {in_front.callee(call) for call in module.walk() if isinstance(call, CallOp)}
    for each in module.body.block.ops:
        if isinstance(each, FuncOp) and not each.is_declaration and each not in called:
            in_front.to_the_body(each)


@dataclass
class _InFront:
    """The state of the move.

    Attributes:
        given: for each called function, loads of the states that it gets as its last operands; None
            until they are known.
    """

    module: ModuleOp
    edit: Edit
    given: dict[FuncOp, Loads | None] = field(default_factory=dict[FuncOp, "Loads | None"])

    def callee(self, call: CallOp) -> FuncOp | None:
        """The function that a call calls; None if it has no body."""
        return function_of(self.module, call)

    def to_the_body(self, function: FuncOp) -> None:
        """Move the loads in regions of a function to its body."""
        self._give_to_calls(function)
        for load in _loads_of(function):
            holder = load
            while isinstance(parent := holder.parent_op(), Operation) and parent is not function:
                holder = parent
            if holder is not load:
                self._check_value(load)
                load.detach()
                function.body.block.insert_op_before(load, holder)
                self.edit.modified(load)

    def _check_value(self, load: nn.LoadOp) -> None:
        """Check that a state has one value while a function runs. Raises InputError."""
        run = run_around(load)
        if run is None:
            return
        name = load.state.string_value()
        if any(
            isinstance(each, nn.StoreOp) and each.state.string_value() == name
            for each in run.walk()
        ):
            raise InputError(
                f"{load.name} at {place(load)}: state {name!r} changes between the runs of a loop, "
                "so it has no gradient; differentiate a program of one run"
            )

    def _to_callers(self, function: FuncOp) -> Loads:
        """Turn the states that a function loads into operands; returns loads of them."""
        self.given[function] = None
        self._give_to_calls(function)
        block = function.body.block
        states: dict[str, tuple[nn.LoadOp, SSAValue]] = {}
        for load in _loads_of(function):
            name = load.state.string_value()
            if name not in states:
                argument = block.insert_arg(load.result.type, len(block.args))
                states[name] = load, argument
            self.edit.replace_uses(load, [states[name][1]])
            load.detach()
        function.update_function_type()
        return tuple(load for load, _ in states.values())

    def _give_to_calls(self, function: FuncOp) -> None:
        """Before each call in a function, load the states that the called function needs, and pass
        them.
        """
        for call in [each for each in function.walk() if isinstance(each, CallOp)]:
            callee = self.callee(call)
            if callee is None:
                continue
            if callee not in self.given:
                self.given[callee] = self._to_callers(callee)
            loads = self.given[callee]
            if loads is None:
                raise InputError(
                    f"{call.name} at {place(call)}: @{callee.sym_name.data} calls itself, and has "
                    "no gradient; write a loop"
                )
            for load in loads:
                copy = load.clone()
                copy.location = load.location
                self.edit.insert(copy, InsertPoint.before(call))
                call.operands = [*call.operands, copy.result]
                self.edit.modified(call)


def _loads_of(function: FuncOp) -> list[nn.LoadOp]:
    return [each for each in function.walk() if isinstance(each, nn.LoadOp)]
