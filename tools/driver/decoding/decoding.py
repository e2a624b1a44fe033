"""Turns a decoder into a program that reads a prompt, or one that generates tokens in a loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, f32, i32, i64
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue

from ....dialects import control, nn
from ....dialects.dtypes import numpy_dtype
from ....dialects.host import (
    ResultSize,
    argument_sizes,
    host_names,
    length_inputs,
    result_sizes,
    set_argument_sizes,
    set_result_sizes,
)
from ....dialects.levels import NN
from ....ir.provenance import named
from ....ir.upstream import Builder, InsertPoint, ModuleOp
from ....ir.verify import verify
from ..padded_tables import read_room
from ..program import entry
from .asked import (
    BOUNDS,
    CONTEXT,
    COUNT,
    ENDS,
    HOLDS,
    LOOP,
    MADE,
    MOST_ENDS,
    PAST,
    SAMPLING,
    TOKEN,
    TOKENS,
    VOCABULARY,
    Decoding,
)
from .emit import Emit
from .roles import (
    IDS,
    LAST_KEYS,
    MASKS,
    POSITIONS,
    SCORES,
    TOTALS,
    NotADecoderError,
    kept_caches,
    only,
)
from .sampling import MOST_WORDS, UINT32, Choice, best_token, drawn_token

CHOICE: Mapping[str, Attribute] = {"temperature": f32, "top_k": f32, "top_p": f32, "seed": UINT32}
"""The inputs of a program that draws tokens."""


def decode(
    module: ModuleOp, decoding: Decoding, keep: Mapping[str, str], path: str
) -> dict[str, str]:
    """Turn a decoder of nn into a program that reads a prompt or generates tokens.

    Returns the caches, each with the output that it receives in the next run. Raises
    NotADecoderError for a program that is not a decoder of one sequence with its cache as inputs
    and outputs, and TextError for a text that the decoder does not know.

    Args:
        keep: caches that their names do not tell.
    """
    program = _Decoder(module, keep, path)
    program.check_context(decoding.context)
    if decoding.check is not None:
        decoding.check(program.words)
    made = program.generating(decoding) if decoding.tokens else program.reading(decoding)
    program.finish(made)
    verify(module, NN)
    return program.kept


@dataclass(frozen=True)
class _Results:
    """What a program returns.

    Attributes:
        values: by name.
        sizes: of results with padding.
    """

    values: Mapping[str, SSAValue]
    sizes: Sequence[ResultSize]


class _Decoder:
    """A decoder under reconstruction.

    Attributes:
        kept: the caches, each with the output that it receives.
    """

    def __init__(self, module: ModuleOp, keep: Mapping[str, str], path: str) -> None:
        self._module, self._path = module, path
        self._given: set[str] = set()
        self._main = entry(module, path)
        self._block = self._main.body.block
        end = self._block.last_op
        assert isinstance(end, ReturnOp)
        self._end = end
        inputs = host_names(self._main, "arg_names", len(self._block.args))
        outputs = host_names(self._main, "result_names", len(end.operands))
        self._inputs = dict(zip(inputs, self._block.args, strict=True))
        self._outputs = dict(zip(outputs, end.operands, strict=True))
        self._sizes, self._padded = result_sizes(module), argument_sizes(module)
        self._lengths = {each.name: each for each in length_inputs(module)}
        hidden = {each.size for each in self._sizes}
        results = [name for name in outputs if name not in hidden]
        taken = [name for name in inputs if name not in self._lengths]
        self.kept = kept_caches(taken, results, keep, path)
        self._ids = only(taken, IDS, path, "input of token ids")
        self._scores = self._scores_of(results)
        self._check_vocabulary()
        self._size = self._room

    # What the model says

    def _scores_of(self, results: Sequence[str]) -> str:
        """The output of scores by token."""
        left = [name for name in results if name not in self.kept.values()]
        name = left[0] if len(left) == 1 else only(left, SCORES, self._path, "output of scores")
        shape = nn.shape_of(self._outputs[name])
        if len(shape) < 2 or any(n != 1 for n in shape[:-2]) or not shape[-1]:
            raise self._bad(
                f"output {name!r} has the shape {list(shape)}; need scores of one sequence, "
                "[1, tokens, vocabulary]"
            )
        if shape[-1] > MOST_WORDS:
            raise self._bad(f"a vocabulary of {shape[-1]:,}; need at most {MOST_WORDS:,}")
        return name

    def _bad(self, message: str) -> NotADecoderError:
        return NotADecoderError(f"{self._path}: {message}")

    @property
    def words(self) -> int:
        """The size of the vocabulary."""
        return nn.shape_of(self._outputs[self._scores])[-1]

    def _check_vocabulary(self) -> None:
        """Raise NotADecoderError if tables that ids look up have another size than the scores."""
        for rows in _tables_of(self._inputs[self._ids]):
            if rows != self.words:
                raise self._bad(
                    f"the embedding of {self._ids!r} has {rows} tokens, and output "
                    f"{self._scores!r} has scores of {self.words}; need one vocabulary"
                )

    def check_context(self, context: int) -> None:
        """Raise NotADecoderError if the model does not know the positions of so many tokens, as far
        as a cache of one size holds them."""
        context = min(context, self._size or context)
        for name in POSITIONS:
            for rows in _tables_of(self._inputs[name]) if name in self._inputs else ():
                if rows < context:
                    raise self._bad(
                        f"a cache of {context:,} tokens, and the model knows {rows:,} positions "
                        f"({name}); need at most {rows:,} (--context)"
                    )

    @property
    def _room(self) -> int | None:
        """How many tokens caches of one size hold; None if they grow, or if nothing says it."""
        found: list[int] = []
        for name in self.kept:
            argument = self._inputs[name]
            for use in argument.uses:
                if isinstance(use.operation, nn.UpdateOp) and use.operation.table is argument:
                    found.append(nn.shape_of(argument)[use.operation.table_axis])
        return min(found) if found and not self._axes else None

    @property
    def _new(self) -> int:
        """The largest number of tokens that the model takes at once."""
        return int(np.prod(nn.shape_of(self._inputs[self._ids])))

    @property
    def _axes(self) -> dict[str, dict[int, str]]:
        """By cache, its axes with padding, each with the length input that is its size.

        Raises NotADecoderError for a size that is a sum.
        """
        found: dict[str, dict[int, str]] = {}
        for each in self._padded:
            if each.argument in self.kept:
                if each.offset or len(each.lengths) != 1:
                    raise self._bad(
                        f"axis {each.axis} of cache {each.argument!r} has a sum of sizes; need one"
                    )
                found.setdefault(each.argument, {})[each.axis] = each.lengths[0]
        return found

    @property
    def _past(self) -> str:
        """The name of the input that says how many tokens the cache holds.

        Raises NotADecoderError if caches have several.
        """
        names = {name for axes in self._axes.values() for name in axes.values()}
        if len(names) > 1:
            raise self._bad(
                f"the sizes of caches are {' and '.join(sorted(names))}; need one number of tokens"
            )
        return next(iter(names), PAST)

    @property
    def _new_length(self) -> str | None:
        """The name of the input that says how many tokens are new; None if it is known."""
        for each in self._padded:
            if each.argument == self._ids and not each.offset and len(each.lengths) == 1:
                return each.lengths[0]
        return None

    # Building

    def reading(self, decoding: Decoding) -> _Results:
        """Let the model read tokens behind those in the cache, and return the one that follows."""
        first = self._block.first_op
        assert first is not None
        past, asked = self._take(self._past, i32), self._asked(decoding)
        emit = Emit(Builder(InsertPoint.before(first)), named(LOOP))
        name = self._new_length
        new = emit.constant(self._new, np.int32) if name is None else self._inputs[name]
        total = emit(nn.AddOp(past, new))
        self._feed(emit, {}, past, total)
        emit = Emit(Builder(InsertPoint.before(self._end)), named(SAMPLING))
        values = {TOKEN: self._chosen(emit, new, total, asked), **self._presents()}
        sizes = [each for each in self._sizes if each.result in values]
        values |= {each.size: self._outputs[each.size] for each in sizes}
        return _Results(values, sizes)

    def generating(self, decoding: Decoding) -> _Results:
        """Let the model compute one token after the other, in a loop."""
        if self._new != 1:
            raise self._bad(
                f"input {self._ids!r} has {self._new} tokens in a loop over tokens; need 1 (--dim)"
            )
        token, past = self._take(TOKEN, i32), self._take(self._past, i32)
        count, ends = self._take(COUNT, i32), self._take(ENDS, i32, (MOST_ENDS,))
        asked, presents = self._asked(decoding), self._presents()
        number = nn.tensor((), i32)
        types: list[Attribute] = [number, number, number, nn.tensor((decoding.tokens,), i32)]
        body = Block(arg_types=[*types, *(each.type for each in presents.values())])
        for op in [*self._block.ops]:
            if not isinstance(op, nn.LoadOp | nn.ConstantOp | ReturnOp):
                op.detach()
                body.add_op(op)
        own_token, own_past, made, tokens, *caches = body.args
        emit = Emit(Builder(InsertPoint.at_start(body)), named(LOOP))
        for name, table in zip(self.kept, caches, strict=True):
            self._read(emit, name, table)
        one = emit.constant(1, np.int32)
        total = emit(nn.AddOp(own_past, one))
        past.replace_all_uses_with(own_past)
        self._feed(emit, {self._ids: own_token}, own_past, total)
        emit = Emit(Builder(InsertPoint.at_end(body)), named(SAMPLING))
        following = self._chosen(emit, one, total, asked)
        emit = Emit(Builder(InsertPoint.at_end(body)), named(LOOP))
        place, row = (emit.shaped(each, (1,)) for each in (made, following))
        tokens = emit(nn.UpdateOp(row, place, tokens, "last", 0))
        more = emit(nn.AddOp(made, one))
        emit.insert(control.YieldOp(following, total, more, tokens, *presents.values()))
        first = self._block.first_op
        assert first is not None
        emit = Emit(Builder(InsertPoint.before(first)), named(LOOP))
        zero = emit.constant(0, np.int32)
        tokens = emit(nn.ExpandOp(zero, (decoding.tokens,)))
        initial = [token, past, zero, tokens]
        initial += [self._with_room(emit, *pair) for pair in zip(self.kept, caches, strict=True)]
        test = self._test([each.type for each in initial], count, ends)
        emit = Emit(Builder(InsertPoint.before(self._end)), named(LOOP))
        loop = emit.insert(control.WhileOp(initial, Region(test), Region(body)))
        _, total, made, tokens, *tables = loop.results
        values: dict[str, SSAValue] = {TOKENS: tokens, MADE: made, HOLDS: total}
        values |= dict(zip(presents, tables, strict=True))
        held = [
            ResultSize(each.result, each.axis, HOLDS)
            for each in self._sizes
            if each.result in presents
        ]
        return _Results(values, [ResultSize(TOKENS, 0, MADE), *held])

    def _test(self, types: Sequence[Attribute], count: SSAValue, ends: SSAValue) -> Block:
        """Whether another token follows: fewer than wanted are there, and none has ended the
        text."""
        block = Block(arg_types=types)
        emit = Emit(Builder(InsertPoint.at_end(block)), named(LOOP))
        token, _, made, *_ = block.args
        ended = emit(nn.ReduceOp(emit.cast(emit(nn.EqualOp(ends, token)), i32), "max", [0]))
        goes_on = emit(nn.EqualOp(ended, emit.constant(0, np.int32)))
        fewer = emit(nn.LessOp(made, count))
        emit.insert(control.ConditionOp(emit(nn.LogicalAndOp(goes_on, fewer))))
        return block

    def _take(self, name: str, element: Attribute, shape: Sequence[int] = ()) -> SSAValue:
        """An input that the program gets; one that is there already if it is a length.

        Raises NotADecoderError if the model has another one of this name.
        """
        if name in self._lengths:
            return self._inputs[name]
        if name in self._inputs:
            raise self._bad(f"input {name!r} has the name of one that each decoder gets; rename it")
        argument = self._block.insert_arg(nn.tensor(shape, element), len(self._block.args))
        self._inputs[name] = argument
        self._given.add(name)
        return argument

    def _asked(self, decoding: Decoding) -> Choice | None:
        """The inputs that say how a token is drawn."""
        if not decoding.drawn:
            return None
        left_out = {*BOUNDS} - {*decoding.bounds}
        wanted = {name: element for name, element in CHOICE.items() if name not in left_out}
        return Choice(**{name: self._take(name, element) for name, element in wanted.items()})

    def _presents(self) -> dict[str, SSAValue]:
        """The caches behind a step, by their names as outputs."""
        return {name: self._outputs[name] for name in self.kept.values()}

    def _read(self, emit: Emit, name: str, table: SSAValue) -> None:
        """Let all that reads a cache read a table with room for new tokens."""
        argument, axes = self._inputs[name], self._axes.get(name, {})
        shape, room = nn.shape_of(argument), nn.shape_of(table)
        fits = len(shape) == len(room) and all(
            n == m or (n < m and axis in axes)
            for axis, (n, m) in enumerate(zip(shape, room, strict=True))
        )
        if nn.element_of(argument) != nn.element_of(table) or not fits:
            raise self._bad(
                f"cache {name!r} is {argument.type} and {self.kept[name]!r} is {table.type}; need "
                "one type"
            )
        if shape != room:
            read_room(argument, table, axes)
            rank = len(shape)
            table = emit(nn.SliceOp(table, [0] * rank, [1] * rank, shape))
        argument.replace_all_uses_with(table)

    def _with_room(self, emit: Emit, name: str, table: SSAValue) -> SSAValue:
        """A cache with the room that its table has."""
        argument = self._inputs[name]
        shape, room = nn.shape_of(argument), nn.shape_of(table)
        more = [m - n for n, m in zip(shape, room, strict=True)]
        return emit(nn.PadOp(argument, [0] * len(shape), more)) if any(more) else argument

    def _feed(
        self, emit: Emit, own: Mapping[str, SSAValue], past: SSAValue, total: SSAValue
    ) -> None:
        """Compute the inputs that follow from the numbers of tokens, and remove them.

        Raises NotADecoderError for an input that does not.

        Args:
            own: inputs that have a value, by name.
            past, total: the tokens in the cache, and those with the new ones: i32 without axes.
        """
        stay = {*self.kept, *self._given, self._past, self._new_length, self._ids} - own.keys()
        for name in [each for each in self._inputs if each not in stay]:
            argument = self._inputs.pop(name)
            made = _feed_of(name) if name not in own and name not in self._lengths else _number
            if made is None:
                raise self._bad(
                    f"input {name!r} is not known by its name; give it a value "
                    f"(--value {name}=VALUE); known are {', '.join(_KNOWN)}"
                )
            value = made(emit, argument, past, own.get(name, total))
            if value is None:
                raise self._bad(
                    f"input {name!r} is {argument.type}; need one number, one for each new token, "
                    "or a mask with one for each token"
                )
            argument.replace_all_uses_with(value)
            self._block.erase_arg(argument)

    def _chosen(self, emit: Emit, new: SSAValue, total: SSAValue, asked: Choice | None) -> SSAValue:
        """The token that follows."""
        scores = self._outputs[self._scores]
        *_, rows, words = nn.shape_of(scores)
        if rows > 1:
            scores = emit.shaped(scores, (rows, words))
            last = emit(nn.SubOp(new, emit.constant(1, np.int32)))
            scores = emit(nn.GatherOp(scores, last, 0))
        scores = emit.shaped(scores, (words,))
        if asked is None:
            return best_token(emit, scores)
        return drawn_token(emit, scores, asked, total)

    def finish(self, results: _Results) -> None:
        """Return the results, and record what inputs and outputs there are."""
        returned = ReturnOp(*results.values.values())
        returned.location = self._end.location
        self._block.insert_op_before(returned, self._end)
        self._block.erase_op(self._end)
        self._main.update_function_type()
        named_args = {argument: name for name, argument in self._inputs.items()}
        names = {
            "arg_names": [named_args[each] for each in self._block.args],
            "result_names": list(results.values),
        }
        for attribute, listed in names.items():
            self._main.properties.pop(attribute, None)
            self._main.attributes[attribute] = ArrayAttr(map(StringAttr, listed))
        left = [each for name, each in self._lengths.items() if name in self._inputs]
        padded = [each for each in self._padded if each.argument in self._inputs]
        set_argument_sizes(self._module, left, padded)
        set_result_sizes(self._module, results.sizes)
        self._module.attributes[VOCABULARY] = IntegerAttr(self.words, i64)
        if self._size is not None:
            self._module.attributes[CONTEXT] = IntegerAttr(self._size, i64)


Feed = Callable[[Emit, BlockArgument, SSAValue, SSAValue], SSAValue | None]
"""The value of an input, from the numbers of tokens in the cache and with the new ones; None if it
does not have the shape for that."""


def _number(
    emit: Emit, argument: SSAValue, past: SSAValue, total: SSAValue, less: int = 0
) -> SSAValue | None:
    shape = nn.shape_of(argument)
    if int(np.prod(shape)) != 1:
        return None
    value = emit(nn.SubOp(total, emit.constant(less, np.int32))) if less else total
    return emit.shaped(emit.cast(value, nn.element_of(argument)), shape)


def _last(emit: Emit, argument: SSAValue, past: SSAValue, total: SSAValue) -> SSAValue | None:
    return _number(emit, argument, past, total, 1)


def _positions(emit: Emit, argument: SSAValue, past: SSAValue, total: SSAValue) -> SSAValue | None:
    shape = nn.shape_of(argument)
    if any(n != 1 for n in shape[:-1]):
        return None
    count = emit.counted(int(np.prod(shape)), np.int32)
    value = emit(nn.AddOp(count, emit.shaped(past, (1,))))
    return emit.shaped(emit.cast(value, nn.element_of(argument)), shape)


def _mask(emit: Emit, argument: SSAValue, past: SSAValue, total: SSAValue) -> SSAValue | None:
    shape = nn.shape_of(argument)
    is_float = numpy_dtype(nn.element_of(argument)).kind not in "biu"
    # A mask of floats with more axes is added to scores.
    if not shape or any(n != 1 for n in shape[:-1]) or (is_float and len(shape) > 2):
        return None
    places = emit.counted(shape[len(shape) - 1], np.int32)
    exists = emit(nn.LessOp(places, emit.shaped(total, (1,))))
    return emit.shaped(emit.cast(exists, nn.element_of(argument)), shape)


ROLES: Mapping[str, tuple[Sequence[str], Feed]] = {
    "positions": (POSITIONS, _positions),
    "mask": (MASKS, _mask),
    "last key": (LAST_KEYS, _last),
    "total": (TOTALS, _number),
}
"""By role, the names of inputs, and what computes them."""


_KNOWN = [name for names, _ in ROLES.values() for name in names]


def _tables_of(value: SSAValue) -> list[int]:
    """The numbers of rows of the tables in which a value names rows."""
    found, pending, seen = list[int](), [value], set[SSAValue]()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            op = use.operation
            if isinstance(op, nn.GatherOp) and op.indices is value:
                found.append(nn.shape_of(op.table)[op.table_axis])
            elif isinstance(op, nn.CastOp | nn.ReshapeOp | nn.SelectOp | nn.AddOp):
                pending.extend(op.results)
    return found


def _feed_of(name: str) -> Feed | None:
    """What computes an input of this name; None if nothing does."""
    return next((feed for names, feed in ROLES.values() if name in names), None)
