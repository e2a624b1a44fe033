"""Keep values on the device from one run to the next, instead of passing them through the host."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from ...backends.reference import tensor_kind
from ...dialects import nn
from ...dialects.host import (
    ArgumentSize,
    KeptSize,
    argument_sizes,
    host_names,
    length_inputs,
    result_sizes,
    set_argument_sizes,
    set_kept_sizes,
    set_result_sizes,
)
from ...dialects.levels import level_of
from ...ir.support.arrays import Array
from ...ir.support.errors import InputError
from ...ir.support.suggestions import suggestion
from ...ir.upstream import LocationAttr, ModuleOp
from ...ir.well_known import UPDATED
from .leaf_names import leaves_of
from .padded_tables import read_room
from .program import entry

HELD = ".held"
"""The end of the name of a state that holds how many elements of other states exist."""


def keep_states(
    module: ModuleOp, kept: Mapping[str, str], path: str, *, folded: bool = False
) -> None:
    """Turn inputs of a program of nn into states that hold an output of the run before.

    Raises InputError for names that the program does not have, and for types that differ.

    Such an input and its output are no longer passed between host and device. The first run finds
    zeros. One output can feed several inputs. A state of the program can take the place of an
    input: it receives the output, and the first run finds what it held before. Programs with such
    states list what they change, so that the host can read and set it.

    Names of nested values stand for all their leaves: params=result[0] is the same as
    params['w']=result[0]['w'] and so on, for each input or state of params.

    The size of an input along an axis may have bounds, if that of its output depends on the run
    too. The state then has the larger one of their largest shapes, and the first run finds as few
    elements as the bounds allow. Another state holds how many elements exist; a run reads as many
    of them as the input that is their length says.

    Args:
        kept: for each input, the output that it receives in the next run.
        folded: whether the values of states may be part of the program's constants, so that they
            cannot change any more.
    """
    if not kept:
        return
    if not level_of(module).is_legal(nn.StoreOp.name):
        raise InputError(f"{path}: --keep: the program is not at nn, where its states are written")
    program = _Program(module, path)
    named = program.leaves(kept)
    held = [program.held(*each) for each in named if each[0] in program.states]
    if held and folded:
        raise InputError(
            f"{path}: --keep {held[0].state.sym_name.data}={held[0].produced}: this is a weight of "
            "the model, which the import may have computed with; need an input"
        )
    pairs = [program.pair(*each) for each in named if each[0] not in program.states]
    program.replace(pairs, held)


@dataclass(frozen=True)
class _Pair:
    """An input, and the output that it receives in the next run.

    Attributes:
        argument, value: the input and the output in @main.
        shape: of the state.
        sizes: by axis with bounds, the size of the input, and the result that has that of the
            output.
    """

    given: str
    produced: str
    argument: BlockArgument
    value: SSAValue
    shape: tuple[int, ...]
    dtype: DTypeLike
    sizes: Mapping[int, tuple[ArgumentSize, str]]

    def loaded(self, symbol: str, element: Attribute) -> Iterator[Operation]:
        """The operations whose last one gives the value of the input."""
        load = nn.LoadOp(symbol, nn.tensor(self.shape, element))
        yield load
        wanted, _ = tensor_kind(self.argument.type)
        if wanted != self.shape:
            rank = len(wanted)
            yield nn.SliceOp(load.result, [0] * rank, [1] * rank, wanted)

    def stored(self, symbol: str) -> Iterator[Operation]:
        """The operations that store the output."""
        value, (made, _) = self.value, tensor_kind(self.value.type)
        if made != self.shape:
            high = [n - m for n, m in zip(self.shape, made, strict=True)]
            pad = nn.PadOp(value, [0] * len(made), high)
            yield pad
            value = pad.result
        yield nn.StoreOp(value, symbol)


@dataclass(frozen=True)
class _Held:
    """A state of the program, and the output that it receives in the next run.

    Attributes:
        value: the output in @main.
    """

    state: nn.StateOp
    produced: str
    value: SSAValue


class _Program:
    """A program whose inputs become states.

    Attributes:
        states: the states that it has, by name.
    """

    def __init__(self, module: ModuleOp, path: str) -> None:
        self._module, self._path = module, path
        self._main = entry(module, path)
        end = self._main.body.block.last_op
        assert isinstance(end, ReturnOp)
        self._end = end
        self._inputs = host_names(self._main, "arg_names", len(self._main.args))
        self._outputs = host_names(self._main, "result_names", len(end.operands))
        self._argument_sizes = argument_sizes(module)
        self._result_sizes = result_sizes(module)
        self._lengths = length_inputs(module)
        self._taken = {op.sym_name.data for op in module.ops if isinstance(op, nn.StateOp | FuncOp)}
        self._states: list[nn.StateOp] = []
        self.states = {op.sym_name.data: op for op in module.ops if isinstance(op, nn.StateOp)}

    def leaves(self, kept: Mapping[str, str]) -> list[tuple[str, str]]:
        """Each input or state that is kept, with its output."""
        names = [*self._inputs, *self.states]
        found: dict[str, str] = {}
        for given, produced in kept.items():
            leaves = {} if produced in self._outputs else leaves_of(given, names)
            each = {leaf: produced + rest for leaf, rest in leaves.items()} or {given: produced}
            for leaf in each.keys() & found.keys():
                raise InputError(f"{self._path}: --keep: {leaf!r} is given twice")
            found.update(each)
        return list(found.items())

    def held(self, given: str, produced: str) -> _Held:
        """A state with its output. Raises InputError as keep_states does."""
        told, state = f"{self._path}: --keep {given}={produced}", self.states[given]
        value = self._output(produced, told)
        if value.type != nn.tensor_of(state.elements):
            raise InputError(
                f"{told}: the state is {state.elements} and the output {value.type}; need one type"
            )
        if any(each.state.string_value() == given for each in self._stores()):
            raise InputError(f"{told}: the program stores into this state; need another one")
        return _Held(state, produced, value)

    def _stores(self) -> Iterator[nn.StoreOp]:
        return (op for op in self._module.walk() if isinstance(op, nn.StoreOp))

    def _output(self, produced: str, told: str) -> SSAValue:
        """The value of an output. Raises InputError if there is none of this name."""
        hidden = {each.size for each in self._result_sizes}
        outputs = [name for name in self._outputs if name not in hidden]
        if produced not in outputs:
            raise InputError(f"{told}: no output {produced!r}{suggestion(produced, outputs)}")
        return self._end.operands[self._outputs.index(produced)]

    def pair(self, given: str, produced: str) -> _Pair:
        """An input with its output. Raises InputError as keep_states does."""
        told = f"{self._path}: --keep {given}={produced}"
        if given not in self._inputs:
            raise InputError(f"{told}: no input {given!r}{suggestion(given, self._inputs)}")
        before = self._main.args[self._inputs.index(given)]
        after = self._output(produced, told)
        (wanted, dtype), (made, other) = tensor_kind(before.type), tensor_kind(after.type)
        taken = {each.axis: each for each in self._argument_sizes if each.argument == given}
        sizes = {each.axis: each.size for each in self._result_sizes if each.result == produced}
        for axis in sorted(taken.keys() ^ sizes.keys()):
            has, lacks = ("input", "output") if axis in taken else ("output", "input")
            raise InputError(
                f"{told}: along axis {axis}, the size of the {has} has bounds, and that of the "
                f"{lacks} is the same in all runs; need bounds for both or for none (--dim)"
            )
        same = len(wanted) == len(made) and all(
            n == m or axis in sizes for axis, (n, m) in enumerate(zip(wanted, made, strict=True))
        )
        if dtype != other or not same:
            raise InputError(
                f"{told}: the input is {before.type} and the output {after.type}; need one type"
            )
        both = {axis: (taken[axis], sizes[axis]) for axis in sizes}
        shape = tuple(map(max, wanted, made))
        return _Pair(given, produced, before, after, shape, dtype, both)

    def replace(self, pairs: list[_Pair], held_states: list[_Held]) -> None:
        """Turn the inputs of pairs into states, and store what states receive."""
        block, end = self._main.body.block, self._end
        first = block.first_op
        assert first is not None
        held: dict[tuple[ArgumentSize, str], str] = {}
        kept: list[KeptSize] = []
        for pair in pairs:
            symbol = self._state(
                pair.given, np.zeros(pair.shape, pair.dtype), pair.argument.location
            )
            element = self._states[-1].elements.element_type
            loaded = _located(pair.loaded(symbol, element), pair.argument.location)
            block.insert_ops_before(loaded, first)
            read_room(pair.argument, loaded[0].results[0], pair.sizes)
            pair.argument.replace_all_uses_with(loaded[-1].results[0])
            stored = _located(pair.stored(symbol), pair.argument.location)
            block.insert_ops_before(stored, end)
            for axis, (size, result) in sorted(pair.sizes.items()):
                kept.append(self._kept_size(symbol, axis, size, result, held))
        for each in held_states:
            store = iter([nn.StoreOp(each.value, each.state.sym_name.data)])
            block.insert_ops_before(_located(store, each.state.location), end)
        if held_states:
            # A program that changes its weights lists all that it changes, as training does.
            changed = (*self._states, *(each.state for each in held_states))
            names = [each.sym_name for each in changed]
            self._module.attributes[UPDATED] = ArrayAttr(names)
        self._forget(pairs, {each.produced for each in (*pairs, *held_states)})
        set_kept_sizes(self._module, kept)
        body = self._module.body.block
        if body.first_op is None:
            return
        body.insert_ops_before(self._states, body.first_op)

    def _kept_size(
        self,
        state: str,
        axis: int,
        size: ArgumentSize,
        result: str,
        held: dict[tuple[ArgumentSize, str], str],
    ) -> KeptSize:
        """The size of a state along an axis. Values of one size share the state that holds it."""
        key = ArgumentSize("", 0, size.offset, size.lengths), result
        if key not in held:
            value = self._end.operands[self._outputs.index(result)]
            least = {each.name: each.least for each in self._lengths}
            first = size.offset + sum(least[name] for name in size.lengths)
            _, dtype = tensor_kind(value.type)
            name = "+".join(size.lengths) + HELD
            held[key] = self._state(name, np.array(first, dtype), self._end.location)
            stored = _located(iter([nn.StoreOp(value, held[key])]), self._end.location)
            self._main.body.block.insert_ops_before(stored, self._end)
        return KeptSize(state, axis, size.offset, held[key], size.lengths)

    def _state(self, symbol: str, first: Array, place: LocationAttr) -> str:
        """The name of a new state."""
        while symbol in self._taken:
            symbol += "_kept"
        self._taken.add(symbol)
        state = nn.StateOp(symbol, first)
        state.location = place
        self._states.append(state)
        return symbol

    def _forget(self, pairs: list[_Pair], produced: Collection[str]) -> None:
        """Remove the inputs of pairs, the outputs that are kept, and the sizes that only these
        outputs had."""
        main, end, block = self._main, self._end, self._main.body.block
        inputs = [name for name in self._inputs if name not in {pair.given for pair in pairs}]
        for pair in pairs:
            block.erase_arg(pair.argument)
        sizes = [each for each in self._result_sizes if each.result not in produced]
        gone = {each.size for each in self._result_sizes} - {each.size for each in sizes}
        named = zip(end.operands, self._outputs, strict=True)
        left = [(v, name) for v, name in named if name not in produced and name not in gone]
        returned = ReturnOp(*(value for value, _ in left))
        returned.location = end.location
        block.insert_op_before(returned, end)
        block.erase_op(end)
        main.update_function_type()
        for attribute, names in (
            ("arg_names", inputs),
            ("result_names", [name for _, name in left]),
        ):
            main.properties.pop(attribute, None)
            main.attributes[attribute] = ArrayAttr(map(StringAttr, names))
        set_result_sizes(self._module, sizes)
        padded = [each for each in self._argument_sizes if each.argument in inputs]
        set_argument_sizes(self._module, self._lengths, padded)


def _located(made: Iterator[Operation], place: LocationAttr) -> list[Operation]:
    """New operations, at one place of the model."""
    found = list(made)
    for op in found:
        op.location = place
    return found
