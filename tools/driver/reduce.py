"""Reduce a program that fails to the smallest part that still fails."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from time import process_time
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, FunctionType, StringAttr, SymbolRefAttr, TensorType
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.irdl import IRDLOperation, OptionalDef
from xdsl.traits import IsTerminator, SymbolOpInterface

from ...dialects.blob_attr import BlobAttr
from ...dialects.host import DEFAULTS, host_names
from ...dialects.levels import known_level
from ...ir.blob import Blob
from ...ir.symbols import referenced_symbols, rename_references, symbol_of, symbols_in
from ...ir.text import print_module
from ...ir.upstream import ModuleOp, Rewriter, VerifyException, is_trivially_dead
from ...ir.verify import verify

Predicate = Callable[[ModuleOp], bool]
"""Whether a module still fails. It may modify the module."""

SECONDS = 20.0

MOST_STARTS = 120
"""If a module has more operations than this, halves of it are cut off first."""
DISTANCES = (0, 1, 2, 4)
"""The distances, in operations, within which operations are kept with a chosen one."""

HOST_NAME, TENSOR = "host_name", "tensor"
"""Properties of operations that exchange data with the host, and of variables."""


def reduce_module(module: ModuleOp, still_fails: Predicate, seconds: float = SECONDS) -> ModuleOp:
    """A smaller module that still fails, as `reduced` finds it."""
    return reduced(module, still_fails, seconds).module


@dataclass(frozen=True)
class Reduced:
    """A smaller module.

    Attributes:
        complete: False if time ran out before all ways were tried.
    """

    module: ModuleOp
    complete: bool


def reduced(
    module: ModuleOp,
    still_fails: Predicate,
    seconds: float = SECONDS,
    better: Callable[[ModuleOp], None] | None = None,
) -> Reduced:
    """A smaller module that still fails. The given module does not change.

    Reduction first looks for the failure near one operation: it keeps this operation alone, then
    with those that it reads, then with more. Then it cuts the program before and after operations:
    a value that is read across a cut becomes an argument or a result of the function, or a variable
    that the host writes or reads. It replaces operations by one of their operands, by the contents
    of one of their regions, or, if they fill one variable from another, by either variable. It
    makes axes shorter. It removes results of functions, everything unused, and in the end the
    attributes that the failure does not need. It tries to remove many at a time first, then fewer
    (delta debugging). It knows no operation by name, so it reduces modules of any level, and the
    same module always in the same way. still_fails sees only modules that verify.

    Raises ValueError if the module does not fail, and any error of still_fails.

    Args:
        seconds: CPU time after which no further module is tried.
        better: is called with each smaller module that fails, and must not change it.
    """
    if not still_fails(module.clone()):
        raise ValueError("the module does not fail; there is nothing to reduce")
    search = _Search(module.clone(), still_fails, process_time() + seconds, better)
    search.run()
    return Reduced(search.best, process_time() < search.end)


@dataclass
class _Search:
    """A search for a smaller module.

    Attributes:
        tried: the digests of the texts of all modules tried.
        spent: for each way, by its number, the smallest module in which it found nothing to remove.
    """

    best: ModuleOp
    still_fails: Predicate
    end: float
    better: Callable[[ModuleOp], None] | None = None
    tidies: bool = True
    tried: set[bytes] = field(default_factory=set[bytes])
    spent: dict[int, ModuleOp] = field(default_factory=dict[int, ModuleOp])

    @property
    def has_time(self) -> bool:
        return process_time() < self.end

    def run(self) -> None:
        """Try all ways to remove something, until none helps."""
        # Removing unused operations comes last, in case the failure needs them.
        self.tidies = self._try(_nothing)
        before = None
        while before is not self.best:
            before = self.best
            self._keep_few()
            for number, way in enumerate(_WAYS):
                if self.spent.get(number) is not self.best and not self._sweep(way):
                    self.spent[number] = self.best
        # Last: the names of arguments keep their values apart while others go.
        while self._sweep(_OF_ATTRIBUTES):
            pass

    def _keep_few(self) -> None:
        """Keep one operation with those that it reads, up to each of DISTANCES."""
        graph = _Graph(self.best)
        if not 1 < len(graph.starts) <= MOST_STARTS:
            return
        tried: set[frozenset[int]] = set()
        for distance in DISTANCES:
            for start in graph.starts:
                kept = graph.near(start, distance)
                if kept in tried or 2 * len(kept) > len(graph.starts) + 1:
                    continue
                tried.add(kept)
                if not self.has_time:
                    return
                if self._try(lambda module, kept=kept: _keep_only(module, kept)):
                    return

    def _sweep(self, way: _Way) -> bool:
        """Remove runs of places, halving their length again and again; true if any was removed."""
        size, changed = way.places(self.best), False
        while size > 0 and self.has_time:
            last = way.places(self.best)
            while last > 0 and self.has_time:
                run = range(max(0, last - size), last)
                changed |= self._try(lambda module, run=run: way.leave_out(module, run))
                last = min(run.start, way.places(self.best))
            size //= 2
        return changed

    def _try(self, change: Callable[[ModuleOp], bool]) -> bool:
        """Change a clone, and keep it as the best module if it verifies and still fails."""
        candidate = self.best.clone()
        try:
            if not change(candidate):
                return False
            if self.tidies:
                _tidy(candidate)
            verify(candidate, known_level(candidate))
        except (VerifyException, ValueError):
            return False
        # Several changes lead to the same module. A module that fails is not tried again either,
        # because going back to it would never end.
        digest = blake2b(print_module(candidate).encode(), digest_size=16).digest()
        if digest in self.tried:
            return False
        self.tried.add(digest)
        if not self.still_fails(candidate.clone()):
            return False
        self.best = candidate
        if self.better is not None:
            self.better(candidate)
        return True


def _nothing(_: ModuleOp) -> bool:
    return True


@dataclass(frozen=True)
class _Way:
    """A way to make a module smaller.

    Attributes:
        places: how many places it applies to, in the order of the program.
        leave_out: applies it at some places; returns false if that is impossible or changes
            nothing.
    """

    places: Callable[[ModuleOp], int]
    leave_out: Callable[[ModuleOp, range], bool]


# Results of functions


def _entries(module: ModuleOp) -> list[FuncOp]:
    """The functions that nothing calls, so that their arguments and results may change."""
    called = {op.callee.string_value() for op in module.walk() if isinstance(op, CallOp)}
    functions = (op for op in module.walk() if isinstance(op, FuncOp) and not op.is_declaration)
    return [f for f in functions if f.sym_name.data not in called]


def _return(function: FuncOp) -> ReturnOp | None:
    last = function.body.blocks[0].last_op if len(function.body.blocks) == 1 else None
    return last if isinstance(last, ReturnOp) else None


def _results(module: ModuleOp) -> list[tuple[FuncOp, int]]:
    return [
        (f, i)
        for f in _entries(module)
        if (last := _return(f)) is not None
        for i in range(len(last.operands))
    ]


def _drop_results(module: ModuleOp, run: range) -> bool:
    wanted = _results(module)[run.start : run.stop]
    for function in {f: None for f, _ in wanted}:
        last = _return(function)
        assert last is not None
        gone = {i for f, i in wanted if f is function}
        kept = [i for i in range(len(last.operands)) if i not in gone]
        _keep_names(function, "result_names", "res_attrs", kept)
        last.operands = [last.operands[i] for i in kept]
        function.update_function_type()
    return True


def _keep_names(function: FuncOp, names: str, attributes: str, kept: Sequence[int]) -> None:
    """Keep the host names and attributes of some arguments or results."""
    for each in (names, attributes):
        for where in (function.attributes, function.properties):
            given = where.get(each)
            if isinstance(given, ArrayAttr):
                listed = cast("ArrayAttr[Attribute]", given).data
                where[each] = ArrayAttr(listed[i] for i in kept)


# Operations


def _operations(module: ModuleOp) -> list[Operation]:
    return [op for op in module.walk() if op is not module and not op.has_trait(IsTerminator)]


def _cut(module: ModuleOp, run: range) -> bool:
    """Erase operations, and return the values that only they have read."""
    return _cut_off(module, _operations(module)[run.start : run.stop])


def _cut_off(module: ModuleOp, ops: Sequence[Operation]) -> bool:
    read = {value: None for op in ops for inner in op.walk() for value in inner.operands}
    if not _erase(module, ops):
        return False
    _return_orphans(module, read)
    return True


def _cut_variables(module: ModuleOp, run: range) -> bool:
    """Erase operations of a level with variables.

    The host writes the variables that others still read, and reads the variables that only the
    erased operations read. Copies of the existing host operations do that.
    """
    return _cut_off_variables(module, _operations(module)[run.start : run.stop])


def _cut_off_variables(module: ModuleOp, cut: Sequence[Operation]) -> bool:
    ops = [op for op in cut if not _in_host(op, "writes")]
    written, read = (
        {name: None for op in ops for inner in op.walk() for name in _in(inner, key)}
        for key in ("writes", "reads")
    )
    if not written or any(result.first_use is not None for op in ops for result in op.results):
        return False
    for op in reversed(ops):
        op.detach()
        op.erase()
    rest = tuple(module.walk())
    kept, used = ({n for op in rest for n in _in(op, key)} for key in ("writes", "reads"))
    # A variable that the host writes need not be read back.
    by_host = {n for op in rest if _in_host(op, "writes") for n in _in(op, "writes")}
    given = [name for name in written if name in used and name not in kept]
    taken = [name for name in read if name in kept - by_host and name not in used]
    for names, key, default in ((given, "writes", "arg_names"), (taken, "reads", "result_names")):
        like = next((op for op in rest if _in_host(op, key)), None)
        if names and like is None:
            return False
        for name in names:
            assert like is not None
            _for_host(module, like, key, name, DEFAULTS[default])
    return True


class _Graph:
    """The graph of a module: which operations read the results and variables that others make.

    Operations are numbered as `_operations` lists them.

    Operations around a kept operation are kept too.

    Attributes:
        starts: the operations to begin with, those without regions first. Leaves, such as constants
            and loads, are left out.
    """

    def __init__(self, module: ModuleOp) -> None:
        ops = _operations(module)
        self.number = {op: i for i, op in enumerate(ops)}
        writers: dict[str, list[Operation]] = {}
        for op in ops:
            for name in _in(op, "writes"):
                writers.setdefault(name, []).append(op)
        self.read: list[set[int]] = []
        for op in ops:
            made = [v.owner for inner in op.walk() for v in inner.operands]
            made += [
                w for inner in op.walk() for n in _in(inner, "reads") for w in writers.get(n, ())
            ]
            known = [each for each in made if isinstance(each, Operation) and each in self.number]
            self.read.append({self.number[each] for each in known})
        self.leaves = {i for i, op in enumerate(ops) if not (op.operands or op.regions)} - {
            self.number[op] for each in writers.values() for op in each
        }
        inner = [i for i, op in enumerate(ops) if i not in self.leaves and _is_inner(op)]
        self.starts = sorted(inner, key=lambda i: bool(ops[i].regions))

    def near(self, start: int, distance: int) -> frozenset[int]:
        """An operation and those that it reads, up to a distance, without leaves."""
        found, last = {start}, {start}
        for _ in range(distance):
            last = {i for each in last for i in self.read[each]} - found - self.leaves
            found |= last
        return frozenset(found)


def _is_inner(op: Operation) -> bool:
    """Whether an operation is not a function, and defines no name."""
    return symbol_of(op) is None and not isinstance(op, FuncOp)


def _keep_only(module: ModuleOp, numbers: frozenset[int]) -> bool:
    """Erase all operations except some, those around and inside them, and leaves."""
    graph = _Graph(module)
    ops = list(graph.number)
    kept = {inner for i in numbers for inner in ops[i].walk()}
    for i in numbers:
        outer = ops[i].parent_op()
        while outer is not None:
            kept.add(outer)
            outer = outer.parent_op()
    cut = [ops[i] for i in graph.starts if ops[i] not in kept]
    cut.sort(key=lambda op: graph.number[op])
    if any(True for op in ops for _ in _in(op, "writes")):
        return _cut_off_variables(module, cut)
    return _cut_off(module, cut)


def _in(op: Operation, key: str) -> Iterator[str]:
    return symbols_in(op.properties.get(key))


def _in_host(op: Operation, key: str) -> bool:
    """Whether the host exchanges the variable that an operation writes or reads."""
    return HOST_NAME in op.properties and key in op.properties


def _for_host(module: ModuleOp, like: Operation, key: str, name: str, default: str) -> None:
    """Add a copy of a host operation for another variable."""
    names = {op.properties[HOST_NAME] for op in module.walk() if HOST_NAME in op.properties}
    fresh = (StringAttr(f"{default}{number}") for number in itertools.count())
    variable = next(op for op in module.body.block.ops if symbol_of(op) == name)
    new = like.clone()
    new.properties[HOST_NAME] = next(each for each in fresh if each not in names)
    new.properties[key] = SymbolRefAttr(name)
    if TENSOR in new.properties:
        new.properties[TENSOR] = variable.properties[TENSOR]
    assert like.parent is not None
    like.parent.insert_op_after(new, like)


def _return_orphans(module: ModuleOp, values: Iterable[SSAValue]) -> None:
    """Make entry functions return values that have no user any more."""
    for function in _entries(module):
        last = _return(function)
        orphans = [
            value
            for value in values
            if last is not None
            and isinstance(value, OpResult)
            and value.op.parent is last.parent
            and value.first_use is None
        ]
        if last is not None and orphans:
            _add_names(function, "result_names", "res_attrs", len(last.operands), len(orphans))
            last.operands = [*last.operands, *orphans]
            function.update_function_type()


def _drop_operations(module: ModuleOp, run: range) -> bool:
    return _erase(module, _operations(module)[run.start : run.stop])


def _erase(module: ModuleOp, ops: Sequence[Operation]) -> bool:
    """Erase operations; users of their results read new arguments instead.

    False if a called function would need new arguments.
    """
    entries = set(_entries(module))
    for op in reversed(ops):
        used = [result for result in op.results if result.first_use is not None]
        if used:
            function = _function_of(op)
            if function not in entries or function is None:
                return False
            for result in used:
                result.replace_all_uses_with(_new_argument(function, result.type))
        op.detach()
        op.erase()
    return True


def _function_of(op: Operation) -> FuncOp | None:
    outer = op.parent_op()
    while outer is not None and not isinstance(outer, FuncOp):
        outer = outer.parent_op()
    return outer


def _new_argument(function: FuncOp, type_: Attribute) -> SSAValue:
    block = function.body.blocks[0]
    _add_names(function, "arg_names", "arg_attrs", len(block.args), 1)
    argument = block.insert_arg(type_, len(block.args))
    function.update_function_type()
    return argument


def _add_names(function: FuncOp, names: str, attributes: str, count: int, more: int) -> None:
    """Name new arguments or results for the host, if the existing ones have names."""
    function.properties.pop(attributes, None)
    taken = host_names(function, names, count)
    numbered = (f"{DEFAULTS[names]}{number}" for number in itertools.count(count))
    fresh = itertools.islice((name for name in numbered if name not in taken), more)
    for where in (function.attributes, function.properties):
        if names in where:
            where[names] = ArrayAttr(map(StringAttr, (*taken, *fresh)))


def _forward(module: ModuleOp, run: range) -> bool:
    """Replace operations by operands of the same types."""
    changed = False
    for op in reversed(_operations(module)[run.start : run.stop]):
        values = [next((v for v in op.operands if v.type == r.type), None) for r in op.results]
        if not values or None in values:
            continue
        for result, value in zip(op.results, values, strict=True):
            result.replace_all_uses_with(cast(SSAValue, value))
        op.detach()
        op.erase()
        changed = True
    return changed


def _unwrap(module: ModuleOp, run: range) -> bool:
    """Replace operations by the contents of their first region that fits."""
    changed, given = False, list[SSAValue]()
    for op in reversed(_operations(module)[run.start : run.stop]):
        block = next((b for b in _blocks(op) if _fits(b, op)), None)
        if block is None or op.parent is None:
            continue
        last = block.last_op
        assert last is not None
        for argument, value in zip(block.args, op.operands, strict=False):
            argument.replace_all_uses_with(value)
        values = tuple(last.operands)
        last.detach()
        last.erase()
        for inner in tuple(block.ops):
            inner.detach()
            op.parent.insert_op_before(inner, op)
        for result, value in zip(op.results, values, strict=True):
            result.replace_all_uses_with(value)
        op.detach()
        op.erase()
        given += values
        changed = True
    _return_orphans(module, given)
    return changed


def _blocks(op: Operation) -> Iterator[Block]:
    for region in op.regions:
        if len(region.blocks) == 1:
            yield region.blocks[0]


def _fits(block: Block, op: Operation) -> bool:
    """Whether a block takes an operation's operands, or nothing, and returns its result types."""
    last = block.last_op
    if last is None or not last.has_trait(IsTerminator) or isinstance(op, FuncOp):
        return False
    taken = [a.type for a in block.args]
    return taken in ([], [v.type for v in op.operands]) and [v.type for v in last.operands] == [
        r.type for r in op.results
    ]


def _merge_read(module: ModuleOp, run: range) -> bool:
    """Replace operations that fill a variable from another one by the variable they read."""
    return _merge_symbols(module, run, keep_read=True)


def _merge_written(module: ModuleOp, run: range) -> bool:
    """Replace operations that fill a variable from another one by the variable they write.

    The host then writes that variable.
    """
    return _merge_symbols(module, run, keep_read=False)


def _merge_symbols(module: ModuleOp, run: range, keep_read: bool) -> bool:
    types = {
        symbol: op.properties.get(TENSOR)
        for op in module.body.block.ops
        if (symbol := symbol_of(op)) is not None
    }
    changed = False
    for op in reversed(_operations(module)[run.start : run.stop]):
        read, written = (list(_in(op, key)) for key in ("reads", "writes"))
        alike = [r for r in read if written and types.get(r) == types.get(written[0])]
        if op.results or len(written) != 1 or not alike or alike[0] == written[0]:
            continue
        op.detach()
        op.erase()
        old, new = (written[0], alike[0]) if keep_read else (alike[0], written[0])
        rename_references(module, {old: new})
        changed = True
    return changed


# Arguments


def _arguments(module: ModuleOp) -> list[tuple[FuncOp, int]]:
    return [(f, i) for f in _entries(module) for i in range(len(f.body.blocks[0].args))]


def _merge_arguments(module: ModuleOp, run: range) -> bool:
    """Replace arguments by the first argument of the same type."""
    changed = False
    for function, i in _arguments(module)[run.start : run.stop]:
        args = function.body.blocks[0].args
        first = next(a for a in args if a.type == args[i].type)
        if first is not args[i] and args[i].first_use is not None:
            args[i].replace_all_uses_with(first)
            changed = True
    return changed


# Shapes


def _axes(module: ModuleOp) -> list[int]:
    """The lengths of axes that can be shorter, in ascending order."""
    return sorted({n for type_ in _tensors(module) for n in type_.get_shape() if n > 1})


def _tensors(module: ModuleOp) -> Iterator[TensorType[Attribute]]:
    for op in module.walk():
        for value in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.args)):
            if isinstance(value.type, TensorType):
                yield cast("TensorType[Attribute]", value.type)


def _shorten(module: ModuleOp, run: range, length: int) -> bool:
    """Make all axes of some lengths shorter, of values and of the arrays of states and constants.

    Arrays keep their first elements. An operation whose other attributes depend on the length does
    not verify afterwards, so the change is dropped.
    """
    gone = {n for n in _axes(module)[run.start : run.stop] if n > length}
    if not gone:
        return False

    def shorter(type_: Attribute) -> Attribute:
        if not isinstance(type_, TensorType):
            return type_
        tensor = cast("TensorType[Attribute]", type_)
        shape = [length if n in gone else n for n in tensor.get_shape()]
        return TensorType(tensor.element_type, shape)

    for op in module.walk():
        for region in op.regions:
            for block in region.blocks:
                for argument in block.args:
                    Rewriter.replace_value_with_new_type(argument, shorter(argument.type))
        for result in op.results:
            Rewriter.replace_value_with_new_type(result, shorter(result.type))
        for name, value in op.properties.items():
            if isinstance(value, BlobAttr):
                kept = tuple(slice(length if n in gone else n) for n in value.array.shape)
                op.properties[name] = BlobAttr(Blob(value.array[kept].copy()))
            elif isinstance(value, TensorType):
                op.properties[name] = shorter(cast(Attribute, value))
        if isinstance(op, FuncOp):
            inputs, outputs = op.function_type.inputs, op.function_type.outputs
            op.function_type = FunctionType.from_lists(
                [shorter(each) for each in inputs], [shorter(each) for each in outputs]
            )
    return True


_WAYS = (
    _Way(lambda module: len(_results(module)), _drop_results),
    _Way(lambda module: len(_operations(module)), _cut),
    _Way(lambda module: len(_operations(module)), _cut_variables),
    _Way(lambda module: len(_results(module)), _drop_results),
    _Way(lambda module: len(_operations(module)), _drop_operations),
    _Way(lambda module: len(_operations(module)), _forward),
    _Way(lambda module: len(_operations(module)), _unwrap),
    _Way(lambda module: len(_operations(module)), _merge_read),
    _Way(lambda module: len(_operations(module)), _merge_written),
    _Way(lambda module: len(_arguments(module)), _merge_arguments),
    _Way(lambda module: len(_axes(module)), partial(_shorten, length=1)),
    _Way(lambda module: len(_axes(module)), partial(_shorten, length=2)),
)


# Attributes


def _attributes(module: ModuleOp) -> list[tuple[Operation, str]]:
    """The attributes of operations, and the properties that may be missing, by their names.

    The names for the host stay, because inputs and outputs are found by them.
    """
    return [
        (op, name)
        for op in module.walk()
        for name in (*op.attributes, *(each for each in op.properties if _may_miss(op, each)))
        if name not in DEFAULTS
    ]


def _may_miss(op: Operation, name: str) -> bool:
    if not isinstance(op, IRDLOperation):
        return False
    found = op.get_irdl_definition().properties.get(name)
    if found is None or op.properties[name] == found.default_value:
        return False
    return isinstance(found, OptionalDef) or found.default_value is not None


def _drop_attributes(module: ModuleOp, run: range) -> bool:
    for op, name in _attributes(module)[run.start : run.stop]:
        if name in op.attributes:
            del op.attributes[name]
            continue
        assert isinstance(op, IRDLOperation)
        default = op.get_irdl_definition().properties[name].default_value
        if default is None:
            del op.properties[name]
        else:
            op.properties[name] = default
    return True


_OF_ATTRIBUTES = _Way(lambda module: len(_attributes(module)), _drop_attributes)


# What nobody uses


def _tidy(module: ModuleOp) -> None:
    """Erase unused operations without effects, then unused symbols and arguments."""
    for op in reversed(tuple(module.walk())):
        if op is not module and is_trivially_dead(op):
            op.detach()
            op.erase()
    named = {name for op in module.walk() for name in referenced_symbols(op)}
    for op in tuple(module.body.block.ops):
        if (
            op.has_trait(SymbolOpInterface)
            and not isinstance(op, FuncOp)
            and (symbol := symbol_of(op)) is not None
            and symbol not in named
        ):
            op.detach()
            op.erase()
    for function in _entries(module):
        _drop_unused_arguments(function)


def _drop_unused_arguments(function: FuncOp) -> None:
    block = function.body.blocks[0]
    kept = [i for i, a in enumerate(block.args) if a.first_use is not None]
    if len(kept) == len(block.args):
        return
    _keep_names(function, "arg_names", "arg_attrs", kept)
    for argument in tuple(block.args):
        if argument.first_use is None:
            block.erase_arg(argument)
    function.update_function_type()
