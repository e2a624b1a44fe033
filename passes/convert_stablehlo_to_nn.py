"""Convert stablehlo to nn: from what frameworks write to the operators that abele compiles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.ir import Block, Operation, Region
from xdsl.traits import IsTerminator

from ..dialects import control, nn
from ..dialects.call_graph import check_inlined
from ..dialects.levels import NN, STABLEHLO
from ..ir.support.errors import InputError
from ..ir.upstream import Context, ModuleOp, ModulePass
from ..ir.well_known import ENTRY
from .complex_pairs.signature import real_signature
from .complex_pairs.splitting import holds_complex
from .complex_pairs.table import split_complex
from .stablehlo_to_nn.conversion import ADVICE, ToNn, Unsupported
from .stablehlo_to_nn.moments import fold_moments
from .stablehlo_to_nn.random_draws import add_random_states, count_runs
from .stablehlo_to_nn.table import ON_ELEMENTS, TABLE

NOTHING = "nothing replaces it"
"""Why an operation that the table does not have is not supported."""

LISTED = 12
"""The most operations that a message lists."""


@dataclass(frozen=True)
class ConvertStablehloToNn(ModulePass):
    """Replace each operation by operators of nn. stablehlo -> nn.

    Functions are inlined where they are called, so @main alone remains. A table says what replaces
    each operation (`passes/stablehlo_to_nn/table.py`). Complex numbers become their real and
    imaginary parts first (`passes/complex_pairs`); the parts of an argument `x` are `x.real` and
    `x.imag`. Constants come first, and what nothing reads is left out.
    """

    name = "convert-stablehlo-to-nn"
    takes = STABLEHLO
    leaves = NN

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        functions = _functions(op)
        main = _entry(functions)
        if holds_complex(op):
            real_signature(main)
            split_complex(op)
        new = ToNn(TABLE, functions, ON_ELEMENTS)
        body = _lowered(main, new)
        if new.refused:
            raise _several(new.refused)
        made = func.FuncOp(ENTRY, main.function_type, Region(body))
        made.attributes.update(main.attributes)
        made.location = main.location
        for each in functions.values():
            each.detach()
            each.erase(safe_erase=False)
        op.body.block.add_op(made)
        add_random_states(new, op)


def refusals(module: ModuleOp) -> list[tuple[Operation, str]]:
    """The operations of a module that nothing replaces, and why. The module stays as it is.

    Raises InputError for a program that breaks other rules.
    """
    origins: dict[Operation, Operation] = {}
    if holds_complex(module):
        copy = module.clone()
        copied = dict(zip(copy.walk(), module.walk(), strict=True))
        real_signature(_entry(_functions(copy)))
        origins = {made: copied.get(op, op) for made, op in split_complex(copy).items()}
        origins = copied | origins
        module = copy
    functions = _functions(module)
    new = ToNn(TABLE, functions, ON_ELEMENTS)
    _lowered(_entry(functions), new)
    return [(origins.get(op, op), error.why or NOTHING) for op, error in new.refused]


def _functions(module: ModuleOp) -> dict[str, func.FuncOp]:
    found = (each for each in module.body.block.ops if isinstance(each, func.FuncOp))
    return {each.sym_name.data: each for each in found}


def _entry(functions: Mapping[str, func.FuncOp]) -> func.FuncOp:
    main = functions.get(ENTRY)
    if main is None:
        raise InputError(f"no function @{ENTRY}; need one, because a run begins there")
    return main


def _several(refused: Sequence[tuple[Operation, Unsupported]]) -> Unsupported:
    """One error for all operations that nothing replaces."""
    first: dict[str, Unsupported] = {}
    for op, error in refused:
        first.setdefault(op.name, error)
    if len(first) == 1:
        return refused[0][1]
    count = Counter(op.name for op, _ in refused)
    shown = [f"{_times(n)}{first[name].told}" for name, n in count.most_common(LISTED)]
    if len(count) > LISTED:
        shown.append(f"and {len(count) - LISTED} others")
    return Unsupported(f"{len(count)} operations are not supported: {', '.join(shown)}; {ADVICE}")


def _times(number: int) -> str:
    return "" if number == 1 else f"{number} times, first "


def _lowered(main: func.FuncOp, new: ToNn) -> Block:
    """The body of @main, in nn."""
    check_inlined(new.functions, main.sym_name.data)
    old = main.body.block
    block = Block(arg_types=[each.type for each in old.args])
    for before, after in zip(old.args, block.args, strict=True):
        after.location, after.name_hint = before.location, before.name_hint
    new.outermost = block
    with new.into(block):
        results = new.lower_block(old, block.args)
    count_runs(new, block)
    end = func.ReturnOp(*results)
    assert old.last_op is not None
    end.location = old.last_op.location
    block.add_op(end)
    fold_moments(block)
    _drop_unused(block)
    _put_constants_first(block)
    return block


def _drop_unused(block: Block) -> None:
    """Erase operations whose results nobody reads, such as constants that became parameters."""
    for op in reversed(tuple(block.ops)):
        if _computes_only(op) and not any(result.first_use for result in op.results):
            block.erase_op(op)
            continue
        for region in op.regions:
            for inner in region.blocks:
                _drop_unused(inner)


def _computes_only(op: Operation) -> bool:
    if isinstance(op, control.RepeatOp | control.WhileOp | control.IfOp):
        inside = (each for region in op.regions for each in region.walk())
        return all(_computes_only(each) or each.has_trait(IsTerminator) for each in inside)
    return isinstance(op, nn.PureTensorOp | nn.ConstantOp | nn.ComputeOp | nn.CombiningOp)


def _put_constants_first(block: Block) -> None:
    """Move the constants of a block, and of the regions inside it, to its beginning, in the order
    in which they are read. Of equal ones, one is left."""
    kept = dict[object, nn.ConstantOp]()
    for op in tuple(block.walk()):
        for value in op.operands:
            made = value.owner
            if isinstance(made, nn.ConstantOp):
                same = kept.setdefault((made.value, made.result.type), made)
                if same is not made:
                    made.result.replace_all_uses_with(same.result)
                    made.detach()
                    made.erase()
    for op in kept.values():
        op.detach()
    first = block.first_op
    for op in kept.values():
        assert first is not None
        block.insert_op_before(op, first)
