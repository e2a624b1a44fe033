# pyright: basic
"""The kernel that computes functions by sequences of their own, and roundings. Needs numba.

It executes the instructions of codelets/sequences.py in their order on vectors of float64, without
contracting or reordering them, so that its bytes equal NumPy's. roundings.py has the functions that
are no sequences.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils

from ...codelets.functions import SEQUENCES
from ...codelets.sequences import BITS, MASK, NUMBER, OPERATIONS
from .hardware import OPTIONS, compiled
from .roundings import ROUNDING_SEQUENCES
from .tables import CHAIN_VECTORS, LANES
from .vectors import F32, I1, I32, I64, code_address, intrinsic, load, plus, put, splat

F64 = ir.DoubleType()

KINDS = {
    NUMBER: ir.VectorType(F64, LANES),
    BITS: ir.VectorType(I64, LANES),
    MASK: ir.VectorType(I1, LANES),
}

NUMBERS = {name: i for i, name in enumerate((*SEQUENCES, *ROUNDING_SEQUENCES))}
"""The number of each function."""


def _extreme(order):
    """np.maximum or np.minimum: a NaN wins, and the second of two equal values."""

    def build(builder, a, b):
        first = builder.or_(builder.fcmp_ordered(order, a, b), builder.fcmp_unordered("uno", a, a))
        return builder.select(first, a, b)

    return build


def _extreme_bits(order):
    return lambda builder, a, b: builder.select(builder.icmp_signed(order, a, b), a, b)


def _square_root(builder, a):
    kind = ir.FunctionType(a.type, [a.type])
    name = f"llvm.sqrt.v{a.type.count}f64"
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [a])


BUILD = {
    "add": lambda builder, a, b: builder.fadd(a, b),
    "subtract": lambda builder, a, b: builder.fsub(a, b),
    "multiply": lambda builder, a, b: builder.fmul(a, b),
    "divide": lambda builder, a, b: builder.fdiv(a, b),
    "square root": _square_root,
    "larger": _extreme(">"),
    "smaller": _extreme("<"),
    "add bits": lambda builder, a, b: builder.add(a, b),
    "subtract bits": lambda builder, a, b: builder.sub(a, b),
    "and": lambda builder, a, b: builder.and_(a, b),
    "or": lambda builder, a, b: builder.or_(a, b),
    "exclusive or": lambda builder, a, b: builder.xor(a, b),
    "shift left": lambda builder, a, b: builder.shl(a, b),
    "shift right": lambda builder, a, b: builder.lshr(a, b),
    "smaller bits": _extreme_bits("<"),
    "larger bits": _extreme_bits(">"),
    "is below": lambda builder, a, b: builder.fcmp_ordered("<", a, b),
    "is equal": lambda builder, a, b: builder.fcmp_ordered("==", a, b),
    "both": lambda builder, a, b: builder.and_(a, b),
    "either": lambda builder, a, b: builder.or_(a, b),
    "not": lambda builder, a: builder.not_(a),
    "choose": lambda builder, mask, a, b: builder.select(mask, a, b),
}
"""By instruction, a function that builds it on vectors; lookups are built separately."""


def _look_up(builder, rows, table):
    """The entries of a table of constants at given rows, one by one."""
    kind = ir.ArrayType(F64, len(table))
    kept = cgutils.global_constant(builder, "table", ir.Constant(kind, list(table)))
    found = ir.Constant(KINDS[NUMBER], ir.Undefined)
    for lane in range(LANES):
        row = builder.extract_element(rows, ir.Constant(I32, lane))
        at = builder.gep(kept, [ir.Constant(I64, 0), row])
        found = builder.insert_element(found, builder.load(at), ir.Constant(I32, lane))
    return found


def _build(builder, sequence, operands):
    """The vector that a sequence computes from vectors of float64."""
    values = list(operands)
    for name, given, table in sequence.instructions:
        arguments = []
        for operand, kind in zip(given, OPERATIONS[name].takes, strict=True):
            if isinstance(operand, tuple):
                element = F64 if kind == NUMBER else I64
                value = splat(builder, ir.Constant(element, operand[0]))
            else:
                value = values[operand]
                if value.type != KINDS[kind]:
                    value = builder.bitcast(value, KINDS[kind])
            arguments.append(value)
        if table:
            (index,) = arguments
            values.append(_look_up(builder, index, table))
        else:
            values.append(BUILD[name](builder, *arguments))
    last = values[-1]
    return last if last.type == KINDS[NUMBER] else builder.bitcast(last, KINDS[NUMBER])


@intrinsic
def _do(context, number, first, second):
    """Replace CHAIN_VECTORS vectors by a function of them, and optionally of as many second
    operands.
    """
    del context

    def generate(context, builder, sig, arguments):
        del sig
        number, *addresses = arguments
        narrow = ir.VectorType(F32, LANES)
        end = builder.append_basic_block("end")
        switch = builder.switch(number, end)
        for name, sequence in SEQUENCES.items():
            block = builder.append_basic_block(name)
            switch.add_case(ir.Constant(I64, NUMBERS[name]), block)
            builder.position_at_end(block)
            with cgutils.for_range(builder, ir.Constant(I64, CHAIN_VECTORS)) as counter:
                at = [plus(builder, each, counter.index, 4 * LANES) for each in addresses]
                operands = [
                    builder.fpext(load(builder, narrow, each), KINDS[NUMBER])
                    for each in at[: sequence.operands]
                ]
                found = _build(builder, sequence, operands)
                put(builder, builder.fptrunc(found, narrow), at[0])
            builder.branch(end)
        for name, build in ROUNDING_SEQUENCES.items():
            block = builder.append_basic_block("rounding")
            switch.add_case(ir.Constant(I64, NUMBERS[name]), block)
            builder.position_at_end(block)
            with cgutils.for_range(builder, ir.Constant(I64, CHAIN_VECTORS)) as counter:
                build(builder, *(plus(builder, a, counter.index, 4 * LANES) for a in addresses))
            builder.branch(end)
        builder.position_at_end(end)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@compiled("void(int64, int64, int64)", **OPTIONS)
def functions(number, first, second):
    """Apply a function to CHAIN_VECTORS vectors of floats at an address, and to those at another
    one.

    The results replace the first vectors.

    Args:
        number: the function, as in NUMBERS.
    """
    _do(number, first, second)


CODE = code_address(functions)
