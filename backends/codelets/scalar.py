"""Scalar functions on whole arrays: the numerics and the price of each, in one record.

float16, bfloat16 and float8 are computed in float32 and rounded once. float32, float64 and integers
are computed in their own dtype, integers modulo their width. Overflow and division by zero neither
raise nor warn: they give infinities, NaN or wrapped integers, as on the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from enum import Enum
from typing import Any, Literal

import numpy as np

from ...dialects.scalar_functions import (
    BY_WORD,
    DRAWN,
    FUNCTIONS,
    STOCHASTIC,
    Mathematics,
    register_function,
)
from ...ir.support.errors import InputError
from ...ir.support.number_kinds import is_floating, whole_limits
from ...ir.support.user_entries import add_entry
from .calls import BYTE
from .conversion import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT64,
    Array,
    Arrays,
    Doubles,
    Parameters,
    compute_dtype,
    convert_into,
    converted,
    float_limits,
    storage_dtype,
)
from .erf import erf
from .float_rounding import (
    from_code,
    one_step,
    round_by_word,
    round_somehow,
    round_stochastically,
    round_to_nearest,
    to_code,
    unless_whole,
)
from .functions import PROGRAMS
from .loops import PUBLISHED, Loop, Loops, assumed, single, unrolled, vector
from .philox import philox

Kernel = Callable[[Parameters, Arrays, Array, np.dtype[Any]], None]
"""Writes a function of arrays, computed in a dtype, into an array.

Takes the parameters, the operands, the array to write, and the dtype to compute in.
"""

Sensitivity = Callable[[Parameters, Arrays, Doubles], Doubles]
"""The error beyond the result's own roundoff, in units of roundoff. It may be an absolute error."""


class Opcode(Enum):
    """Operations of the steps of a compiled function; each gives exactly the bits that NumPy
    gives."""

    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    DIV = "div"
    MAX = "max"
    MIN = "min"
    ROUND = "round"


@dataclass(frozen=True)
class ScalarStep:
    """One step of a function, which changes the running value.

    Attributes:
        by: the other operand of the step: a constant, the function's other operand, its next
            parameter, or the value itself.
        first: whether `by` is the left operand, as in 1 / value.
    """

    opcode: Opcode
    by: float | Literal["operand", "parameter", "itself"]
    first: bool = False


@dataclass(frozen=True, eq=False)
class ScalarFunction(Mathematics):
    """One scalar function with its numerics and its price.

    Abele's own functions have their mathematics in dialects/scalar_functions.py; a user's function
    gives it here, as keywords.

    Attributes:
        kernel: how NumPy computes it.
        ulps: the error in the computing dtype, in units of the result's roundoff (u |r|). A
            correctly rounded function has 1, an exact function 0.
        steps: with more than one, the kernel keeps intermediate values in the array that it writes,
            which must have the computing dtype.
        sensitivity: the error that rounding the parameters adds.
        sensitivity_is_absolute: whether that error is a number, not a multiple of the roundoff.
        priced_as: its inner loops, or the name of another function that has the same price; "" for
            the published loop of the function's own name, or else the assumed one.
        compiled: the instructions of the host's kernels; None where the host calls NumPy, or where
            a kernel runs the function's sequence.
        sequence: the name of the fixed sequence of operations (functions.py) that defines the bytes
            of float32 results, or gives the same bytes; "" if there is none.
        same_as: for certain parameters, an equal function.
    """

    kernel: Kernel
    _: KW_ONLY
    ulps: float = 0.0
    steps: int = 1
    sensitivity: Sensitivity | None = None
    sensitivity_is_absolute: bool = False
    priced_as: str | Loop | Loops = ""
    compiled: tuple[ScalarStep, ...] | None = None
    sequence: str = ""
    same_as: Mapping[Parameters, str] = field(default_factory=dict[Parameters, str])

    @property
    def is_exact(self) -> bool:
        """Whether the result is right to the last bit, before it is rounded to its dtype."""
        return not self.ulps and self.sensitivity is None

    @property
    def is_rounded_correctly(self) -> bool:
        """Whether the last bit never depends on which vector loop computes the result."""
        return self.ulps <= 1 or bool(self.sequence)

    @property
    def loops(self) -> Loops | None:
        """The inner loops of the function; None if it has no price."""
        match self.priced_as:
            case Loops():
                return self.priced_as
            case Loop() as loop:
                return Loops(loop, loop, loop)
            case other if other in ("", self.name):
                return PUBLISHED.get(self.name)
            case other:
                return loops_of(other)

    def result_dtype(self, *dtypes: np.dtype[Any]) -> np.dtype[Any]:
        """The dtype of the result, given the dtypes of the operands."""
        return BOOL if self.boolean else storage_dtype(*dtypes[self.values :])

    def apply(self, parameters: Parameters, *arrays: Array, out: Array | None = None) -> Array:
        """Apply the function to arrays that broadcast together, in their dtype or in the dtype of
        `out`.

        out may be an operand, and may have any strides and dtype. float32 into float32 makes no
        copy, except for a select that writes over its own operands, and for a function that is not
        correctly rounded if out overlaps an operand.
        Raises ValueError for a wrong number of operands or parameters.
        """
        if len(arrays) != self.arity or len(parameters) != self.parameters:
            raise ValueError(
                f"{self.name}: {len(arrays)} operands and {len(parameters)} parameters; "
                f"need {self.arity} and {self.parameters}"
            )
        dtypes = tuple(a.dtype for a in arrays)
        if out is None:
            shape = np.broadcast_shapes(*(a.shape for a in arrays))
            out = np.empty(shape, self.result_dtype(*dtypes))
        if self.kernel in (_identity, _same_bits):
            self.kernel(parameters, arrays, out, out.dtype)
            return out
        computing = compute_dtype(*dtypes[self.values :])
        if out.dtype.kind in "iu" and computing.kind in "iu":
            # Products of 8-bit integers may be added up in 32 bits.
            computing = max(computing, out.dtype, key=lambda each: each.itemsize)
        with np.errstate(all="ignore"):
            if self.boolean and out.dtype == BOOL:
                direct = True
            elif self.steps == 1 and not self.boolean:
                direct = is_floating(out.dtype) == is_floating(computing) and out.dtype != BOOL
            else:
                direct = out.dtype == computing and not self.boolean
            # If the result overlaps an operand, NumPy takes a slower loop whose last bits differ.
            # Also, the first of several steps might overwrite an operand that a later step reads.
            is_rounded = self.is_exact or self.is_rounded_correctly
            is_safe = is_rounded and (self.steps == 1 or self.arity == 1)
            if direct and (is_safe or not any(np.may_share_memory(out, a) for a in arrays)):
                self.kernel(parameters, arrays, out, computing)
                return out
            exact = np.empty(out.shape, BOOL if self.boolean else computing)
            self.kernel(parameters, arrays, exact, computing)
            convert_into(exact, out)
        return out

    def condition(
        self,
        parameters: Parameters,
        *arrays: Doubles,
        roundoff: float,
        result: Doubles | None = None,
    ) -> Doubles:
        """The error bound, in units of the roundoff of the dtype that the function computes in.

        The operands count as exact: no error is propagated.

        Args:
            roundoff: that of the dtype.
            result: the function's value, if the caller has it already.
        """
        value = self.apply(parameters, *arrays) if result is None else result
        if self.is_exact:
            return np.zeros(value.shape)
        with np.errstate(all="ignore"):
            error = self.ulps * np.abs(value)
            if self.sensitivity is not None:
                more = self.sensitivity(parameters, arrays, value)
                error = error + (more / roundoff if self.sensitivity_is_absolute else more)
        return error


def apply_into(
    function: ScalarFunction, parameters: tuple[float, ...], inputs: list[Array], out: Array
) -> None:
    """Apply a function to arrays, and write the result into another array."""
    _ = function.apply(parameters, *inputs, out=out)


def computed_by(expression: Callable[..., Array]) -> Kernel:
    """A kernel from a NumPy expression of the operands, followed by the parameters.

    The expression gets them in the computing dtype; integers go through float64.

        ScalarFunction("softsign", 1, computed_by(lambda x: x / (1 + np.abs(x))), ulps=3)
    """

    def kernel(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
        computing = dtype if is_floating(dtype) else FLOAT64
        operands = (a.astype(computing) for a in arrays)
        convert_into(expression(*operands, *map(computing.type, parameters)), out)

    return kernel


def _ufunc(ufunc: np.ufunc, *constants: float) -> Kernel:
    """A kernel that applies a ufunc to the operands, then constants."""

    def kernel(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
        ufunc(*arrays, *map(dtype.type, constants), out=out, dtype=dtype, casting="unsafe")

    return kernel


def _with_parameters(ufunc: np.ufunc) -> Kernel:
    """A kernel that applies a ufunc to the operands, then the parameters.

    Integers stay integers if the parameters are whole.
    """

    def kernel(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
        if is_floating(dtype) or all(float(p).is_integer() for p in parameters):
            constants = [constant_in(dtype, p) for p in parameters]
            ufunc(*arrays, *constants, out=out, dtype=dtype, casting="unsafe")
        else:
            convert_into(ufunc(*(a.astype(np.float64) for a in arrays), *parameters), out)

    return kernel


def constant_in(dtype: np.dtype[Any], parameter: float) -> np.generic:
    """A parameter in a dtype. For integers it must be whole, and wraps."""
    if is_floating(dtype):
        return dtype.type(parameter)
    return dtype.type(np.array(int(parameter) % (1 << 64), np.uint64).astype(dtype).item())


def _in_floats(ufunc: np.ufunc, *constants: float) -> Kernel:
    """A kernel that applies a ufunc for floats to the operands, then constants.

    Integers go through float64.
    """

    def kernel(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
        if is_floating(dtype):
            ufunc(*arrays, *map(dtype.type, constants), out=out, dtype=dtype, casting="unsafe")
        else:
            convert_into(ufunc(*(a.astype(np.float64) for a in arrays), *constants), out)

    return kernel


def _in_sequence(name: str, otherwise: Kernel) -> Kernel:
    """A kernel that runs abele's own sequence for float32, and another kernel for other dtypes.

    Parameters become further operands of the sequence.
    """
    program = PROGRAMS[name]

    def kernel(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
        if dtype == FLOAT32:
            program.run((*arrays, *(np.array(p, np.float32) for p in parameters)), out)
        else:
            otherwise(parameters, arrays, out, dtype)

    return kernel


def _predicate(ufunc: np.ufunc) -> Kernel:
    """A kernel that applies a ufunc with a bool result to operands in their own dtypes."""

    def kernel(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
        ufunc(*(a if a.dtype.kind in "biuf" else a.astype(dtype) for a in arrays), out=out)

    return kernel


def _identity(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
    convert_into(arrays[0], out)


def _same_bits(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
    """The bits of the operand, as elements of another dtype of as many bytes."""
    unit = f"u{out.itemsize}"
    np.copyto(out.view(unit), arrays[0].view(unit))


def _scaled_product(
    parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]
) -> None:
    """A product of two operands, times a constant; rounded once for float32."""
    wide = FLOAT64 if dtype == FLOAT32 else dtype
    products = np.multiply(*arrays, dtype=wide, casting="unsafe")
    _with_parameters(np.multiply)(parameters, (products,), out, wide)


def _divide(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
    """Division. Integers are divided towards zero; by zero, the result is 0."""
    if is_floating(dtype):
        np.divide(*arrays, out=out, dtype=dtype, casting="unsafe")
        return
    a, b = (x.astype(dtype) for x in arrays)
    quotient = a // b
    quotient += ((a % b != 0) & ((a < 0) != (b < 0))).astype(dtype)
    np.copyto(out, np.where(b == 0, 0, quotient), casting="unsafe")


def _reciprocal(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
    _divide((), (np.ones((), dtype), *arrays), out, dtype)


def _float64_power(
    parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]
) -> None:
    """The first operand to the power of the second, as IEEE 754 defines pow."""
    x, y = arrays
    # NumPy has a vector loop for operands that do not overlap the result, and a libm function for
    # others. The two differ in the last bit, so the result gets memory of its own.
    np.copyto(out, np.power(x, y, dtype=dtype, casting="unsafe"), casting="unsafe")
    is_root = y == 0.5
    if is_root.any():
        # NumPy may take a square root, which differs for -infinity and -0.0.
        np.copyto(out, np.abs(x), casting="unsafe", where=is_root & ((x == -np.inf) | (x == 0)))


_power_of_floats = _in_sequence("pow", _float64_power)


def _power(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
    """The first operand to the power of the second.

    Integers wrap; a negative power of an integer is rounded towards zero.
    """
    x, y = arrays
    if is_floating(dtype):
        _power_of_floats(parameters, arrays, out, dtype)
        return
    x, y = x.astype(dtype), y.astype(dtype)
    power = np.power(x, np.maximum(y, 0))
    # Convert to the dtype first: NumPy would compute a mixture of int64 and uint64 in float64.
    np.copyto(out, np.where(y < 0, _inverse(x, y).astype(dtype), power), casting="unsafe")


def _inverse(x: Array, y: Array | int) -> Array:
    """A negative power of integers, rounded towards zero: 1, -1 or 0."""
    return np.where(x == 1, 1, np.where(x == -1, np.where(y % 2 == 0, 1, -1), 0))


def _to_power(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
    """An operand to a constant power. The powers 2, 1 and -1 need no logarithm."""
    (p,) = parameters
    if p == 2.0:
        np.square(arrays[0], out=out, dtype=dtype, casting="unsafe")
    elif p == 1.0:
        convert_into(arrays[0], out)
    elif p == -1.0:
        _reciprocal((), arrays, out, dtype)
    elif is_floating(dtype):
        _power_of_floats((), (arrays[0], np.asarray(dtype.type(p))), out, dtype)
    elif p.is_integer():
        x = arrays[0].astype(dtype)
        # The power may exceed the range of the dtype. Modulo 2^64, it is right for every width.
        whole = (
            _inverse(x, int(p))
            if p < 0
            else np.power(x.astype(np.int64), np.int64(equal_exponent(int(p))))
        )
        np.copyto(out, whole, casting="unsafe")
    else:
        convert_into(np.power(arrays[0].astype(np.float64), p), out)


def equal_exponent(p: int) -> int:
    """An exponent below 2^63 that gives the same powers of integers modulo 2^64.

    From 64 on, the powers of even numbers are 0, and those of odd numbers repeat after 2^62.
    """
    return p if p < 64 else 64 + (p - 64) % (1 << 62)


def _negate(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
    # Not np.negative: with AVX-512, NumPy 2.4.6 reads wrong elements if it negates every fourth
    # element into a strided array. -0.0 - x is -x to the bit, for zeros too.
    zero = dtype.type(-0.0 if is_floating(dtype) else 0)
    np.subtract(zero, arrays[0], out=out, dtype=dtype, casting="unsafe")


def _sigmoid(values: Array) -> Array:
    """The logistic function of floats."""
    return np.reciprocal(np.exp(-values) + 1)


def _to_whole(ufunc: np.ufunc) -> Kernel:
    """A kernel that rounds to whole numbers. Integers stay as they are."""

    def kernel(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
        if is_floating(dtype):
            ufunc(arrays[0], out=out, dtype=dtype, casting="unsafe")
        else:
            convert_into(arrays[0], out)

    return kernel


def _in_doubles(function: Callable[[Array], Array]) -> Kernel:
    """A kernel that applies a function of float64 and rounds its result once.

    The function gets a contiguous array, so that the last bit never depends on strides.
    """

    def kernel(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
        # Contiguous, so that NumPy takes one loop. ascontiguousarray would add an axis to a number.
        made = function(np.array(arrays[0], np.float64, order="C"))
        # Convert through the computing dtype, whatever the dtype of out is.
        convert_into(made.astype(dtype) if is_floating(dtype) else made, out)

    return kernel


def _is_nan(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
    # Not np.isnan or np.isinf: NumPy 2.4.6 finds nothing if it writes into a strided array.
    (x,) = arrays
    np.not_equal(x, x, out=out)


def _is_inf(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
    if is_floating(dtype):
        np.equal(np.absolute(arrays[0].astype(dtype, copy=False)), np.inf, out=out)
    else:
        out[...] = False


def _on_bits(ufunc: np.ufunc) -> Kernel:
    """A kernel that applies a ufunc to bits of integers. Floats are truncated to int64 first."""

    def kernel(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
        width = INT64 if is_floating(dtype) else dtype
        convert_into(ufunc(*(converted(a, width) for a in arrays), dtype=width), out)

    return kernel


def _packed_mul(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
    """A number times an integer that is taken out of a byte; floats are computed in float64."""
    number, *packed = arrays
    wide = FLOAT64 if is_floating(dtype) else dtype
    unpacked = np.empty(np.broadcast_shapes(*(a.shape for a in packed)), wide)
    unpack_into(int(parameters[0]), packed, unpacked)
    np.multiply(number, unpacked, out=out, dtype=wide, casting="unsafe")


def unpack_into(bits: int, arrays: Sequence[Array], out: Array) -> None:
    """Write the numbers that packed integers stand for, computed in the dtype of `out`.

    Args:
        bits: the width of an integer.
        arrays: bytes, scales, zero points, and the lowest bit of each integer. They broadcast
            together.
    """
    packed, scale, zero, shift = arrays
    if packed.dtype != BYTE or shift.dtype != BYTE:
        # The oracle reads all operands as one type.
        width = INT64 if is_floating(out.dtype) else out.dtype
        packed, shift = converted(packed, width), converted(shift, width)
    mask = np.array((1 << min(max(bits, 0), 8)) - 1).astype(packed.dtype)
    whole = packed >> shift & mask
    with np.errstate(all="ignore"):
        np.subtract(whole, zero, out=out, dtype=out.dtype, casting="unsafe")
        np.multiply(out, scale, out=out, dtype=out.dtype, casting="unsafe")


def _of_packed(parameters: Parameters, arrays: Arrays, result: Doubles) -> Doubles:
    """What is lost where the integer times the scale leaves the range of float32."""
    number, *packed = arrays
    unpacked = np.empty(np.broadcast_shapes(*(a.shape for a in packed)), np.float64)
    unpack_into(int(parameters[0]), packed, unpacked)
    known = float_limits(FLOAT32)
    lost = np.abs(number) * (known.smallest_normal / known.roundoff)
    is_far = np.abs(unpacked) > known.largest / 2
    return np.where(is_far & np.isfinite(unpacked), np.inf, lost + 0 * result)


def _random_bits(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
    """The first word of Philox for an element's index and a step, keyed by a seed and a key."""
    index, step, seed = (converted(a, INT64) for a in arrays)
    zero = np.zeros((), np.int64)
    words = philox((index, zero, step, zero), (seed, np.array(int(parameters[0]), np.int64)))
    convert_into(words[0].astype(dtype) if is_floating(dtype) else words[0], out)


def _leaky_relu(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
    negative = arrays[0] < 0
    if arrays[0] is not out:
        np.copyto(out, arrays[0], casting="unsafe")
    if is_floating(dtype) or parameters[0].is_integer():
        alpha = constant_in(dtype, parameters[0])
        np.multiply(out, alpha, out=out, where=negative)
    else:
        scaled = np.empty(out.shape, dtype)
        convert_into(out.astype(np.float64) * parameters[0], scaled)
        np.copyto(out, scaled, where=negative)


def _clip(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
    """The operand limited to two limits; the upper limit if they are in the wrong order."""
    low, high = parameters
    if is_floating(dtype):
        limits = dtype.type(low), dtype.type(high)
    else:
        range_ = whole_limits(dtype)
        limits = tuple(
            dtype.type(
                range_.min if v <= range_.min else range_.max if v >= range_.max else int(round_(v))
            )
            for v, round_ in ((low, np.ceil), (high, np.floor))
        )
    np.maximum(arrays[0], limits[0], out=out, dtype=dtype, casting="unsafe")
    np.minimum(out, limits[1], out=out)


def _logical_not(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
    np.equal(arrays[0] if arrays[0].dtype.kind != "V" else arrays[0].astype(dtype), 0, out=out)


def _select(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
    """The second operand where the first is not 0, otherwise the third."""
    condition, a, b = arrays
    if condition.dtype != BOOL:
        condition = converted(condition, BOOL)
    if np.may_share_memory(out, a) or np.may_share_memory(out, condition):
        np.copyto(out, np.where(condition, a.astype(dtype), b.astype(dtype)), casting="unsafe")
        return
    np.copyto(out, b, casting="unsafe")
    np.copyto(out, a, where=condition, casting="unsafe")


def _gate(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
    """The second operand where the first is positive, otherwise 0."""
    condition, value = arrays
    _kept_where(condition > 0, value, out, dtype)


def _match(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
    """The third operand where the first two are equal, otherwise 0."""
    a, b, value = arrays
    _kept_where(a == b, value, out, dtype)


def _kept_where(kept: Array, value: Array, out: Array, dtype: np.dtype[Any]) -> None:
    """The value where `kept` is true, to the bit, otherwise 0.

    Args:
        kept: truth values of one byte each.
    """
    if value.dtype == out.dtype == dtype:
        # Multiply the bits by 0 or 1, because a masked copy branches for each element.
        bits = f"u{dtype.itemsize}"
        np.multiply(value.view(bits), kept, out=out.view(bits))
        return
    if np.may_share_memory(out, value):
        value = value.copy()
    out[...] = 0
    np.copyto(out, value.astype(dtype, copy=False), where=kept, casting="unsafe")


# Errors that rounding the parameters to float32 adds


def _rounds(parameter: float) -> bool:
    with np.errstate(all="ignore"):
        return float(np.float32(parameter)) != parameter


def _of_scale(parameters: Parameters, arrays: Arrays, result: Doubles) -> Doubles:
    return np.abs(result) * _rounds(parameters[0])


def _of_shift(parameters: Parameters, arrays: Arrays, result: Doubles) -> Doubles:
    return np.full(result.shape, abs(parameters[0]) * _rounds(parameters[0]))


def _of_leaky_relu(parameters: Parameters, arrays: Arrays, result: Doubles) -> Doubles:
    return np.where(arrays[0] < 0, (1.0 + _rounds(parameters[0])) * np.abs(result), 0.0)


def _of_clip(parameters: Parameters, arrays: Arrays, result: Doubles) -> Doubles:
    error = np.zeros(result.shape)
    for limit in parameters:
        if _rounds(limit):
            np.maximum(error, np.where(result == limit, abs(limit), 0.0), out=error)
            # Near a limit, the rounded limit may be reached first.
            near = np.abs(arrays[0] - limit) <= abs(limit) * 2.0**-23
            np.maximum(error, np.where(near, abs(limit), 0.0), out=error)
    return error


def _of_power(parameters: Parameters, arrays: Arrays, result: Doubles) -> Doubles:
    (p,) = parameters
    if p in (1.0, 2.0, -1.0):
        return np.abs(result) * (p != 1.0)
    error = _ULPS * np.abs(result)
    if _rounds(p):
        slope = np.abs(p * np.log(np.abs(arrays[0]))) * np.abs(result)
        error += np.where(np.isfinite(slope), slope, 0.0)
    return error


_ULPS = 4.0
"""2 units in the last place are 4 roundoffs: what libraries of float64 functions keep to. Float32
functions, by sequences of abele's own, have 1.02."""


def _function(
    name: str,
    kernel: Kernel,
    *,
    ulps: float = 0.0,
    steps: int = 1,
    sensitivity: Sensitivity | None = None,
    sensitivity_is_absolute: bool = False,
    priced_as: str | Loops,
    compiled: tuple[ScalarStep, ...] | None = None,
    sequence: str = "",
    same_as: Mapping[Parameters, str] | None = None,
) -> ScalarFunction:
    """The numerics and the price of a function whose mathematics are in
    dialects/scalar_functions.py.
    """
    facts = {each.name: getattr(FUNCTIONS[name], each.name) for each in fields(Mathematics)}
    return ScalarFunction(
        **facts,
        kernel=kernel,
        ulps=ulps,
        steps=steps,
        sensitivity=sensitivity,
        sensitivity_is_absolute=sensitivity_is_absolute,
        priced_as=priced_as,
        compiled=compiled,
        sequence=sequence,
        same_as=same_as or {},
    )


def _by_sequence(
    name: str, of_doubles: Callable[[Array], Array], priced_as: str | Loops, ulps: float = _ULPS
) -> ScalarFunction:
    """A function with a sequence for float32, and a NumPy function for float64.

    Integers go through float64.
    """
    kernel = _in_sequence(name, _in_doubles(of_doubles))
    return _function(name, kernel, ulps=ulps, priced_as=priced_as, sequence=name)


def _table(*functions: ScalarFunction) -> dict[str, ScalarFunction]:
    return {function.name: function for function in functions}


_VECTOR = Loops(vector(1), vector(1), vector(1))
_ADDING = Loops(vector(1), vector(1), unrolled(7, 1))
_EXTREME = Loops(unrolled(4, 2), unrolled(4, 4), unrolled(7, 1))
_LESS = Loops(unrolled(14, 4), unrolled(9, 4), unrolled(30, 2))
_LESS_EQUAL = Loops(unrolled(14, 4), unrolled(9, 4), unrolled(31, 2))
_ASSUMED = Loops(None, None, None)
_ROUNDING = Loops(vector(2), vector(2), None)
_REMAINDER = Loops(unrolled(133, 2), unrolled(300, 4), unrolled(292, 1))
_BITS = Loops(None, None, unrolled(7, 1))
_PHILOX = Loops(None, None, assumed(single(280)))
"""Assumed: each of ten rounds has two products of 32 bits with both halves, of eleven instructions
each, four exclusive ors and two additions."""
_CODES = Loops(*[assumed(vector(6))] * 3)
"""Assumed: one product with a power of two, after which the bits of a float16 are those of the
code, and five instructions of whole words, which move exponent, fraction and sign to their
places."""
_POW = Loops(unrolled(312, 1), unrolled(325, 1), None)

# sin, cos and tan. In float32, poplibs calls its library for one element after the other, at 2,300
# cycles for sin and cos and 5,100 for tan, which depend on the data. Abele assumes a codelet
# without branches, for vectors of two numbers, with these instructions of the floating-point unit:
#
#     the angle in right angles, its nearest whole number      3
#     what is left of the angle, in six products and sums     12
#     its square                                               1
#     the polynomial of the sine, with three coefficients      7
#     the polynomial of the cosine, with three coefficients    8
#     one of the two, where the whole number is even           5
#     the sign, from its second bit                            3
#
# cos adds 1 to the whole number before it takes the sign. tan chooses a second time (3), and has
# the published division (10, without its loads and store 8). Each instruction takes one cycle, and
# none is a product and a sum in one. Loads of constants are paired with them, as they are in
# poplibs inlineAssemblerCast.hpp; the published count of erf has 5 cycles for them.
#
# For |x| up to 100,000, the result is off by at most 4 roundoffs (tan: 6), where the host's kernels
# are off by 1.02. A larger x needs a longer reduction and a branch to it, which nobody has priced.
# The tests run the codelet, and count.
_TURN = 3 + 12 + 1 + 7 + 8
_TAN = _TURN + 5 + 3 + 3 + 8
_HALF_TRIGONOMETRY = unrolled(26, 1)
"""Published (poplibs lib/popops/popopsCycleEstimators.hpp, commit 0b8caa895375): computed in
float32 from the tangent of half the angle, one element at a time. Older versions had 2,300."""
_SIN_LOOPS = Loops(assumed(vector(_TURN + 5 + 3)), _HALF_TRIGONOMETRY, None)
_COS_LOOPS = Loops(assumed(vector(_TURN + 5 + 3 + 1)), _HALF_TRIGONOMETRY, None)
_TAN_LOOPS = Loops(assumed(vector(_TAN)), assumed(vector(2 * _TAN + 3)), None)
"""In float16, two vectors of float32, two conversions to them, and one back. Published are 5,700
cycles, for a quotient of two calls of the library."""

SCALAR_FUNCTIONS: dict[str, ScalarFunction] = _table(
    _function("identity", _identity, priced_as=_VECTOR, compiled=()),
    # A copy, priced like every other copy.
    _function("bitcast", _same_bits, priced_as=_VECTOR),
    _function(
        "add",
        _ufunc(np.add),
        ulps=1,
        priced_as=_ADDING,
        compiled=(ScalarStep(Opcode.ADD, "operand"),),
    ),
    _function(
        "sub",
        _ufunc(np.subtract),
        ulps=1,
        priced_as=_ADDING,
        compiled=(ScalarStep(Opcode.SUB, "operand"),),
    ),
    _function(
        "mul",
        _ufunc(np.multiply),
        ulps=1,
        priced_as=_ADDING,
        compiled=(ScalarStep(Opcode.MUL, "operand"),),
    ),
    _function("scaled_mul", _scaled_product, ulps=2, sensitivity=_of_scale, priced_as="mul"),
    _function(
        "div",
        _divide,
        ulps=1,
        priced_as=Loops(unrolled(10, 2), unrolled(21, 4), unrolled(277, 1)),
        compiled=(ScalarStep(Opcode.DIV, "operand"),),
    ),
    _function(
        "max", _ufunc(np.maximum), priced_as=_EXTREME, compiled=(ScalarStep(Opcode.MAX, "operand"),)
    ),
    _function(
        "min", _ufunc(np.minimum), priced_as=_EXTREME, compiled=(ScalarStep(Opcode.MIN, "operand"),)
    ),
    _function("pow", _power, ulps=_ULPS, priced_as=_POW, sequence="pow"),
    _function(
        "relu",
        _ufunc(np.maximum, 0),
        priced_as=Loops(vector(1), vector(1), None),
        compiled=(ScalarStep(Opcode.MAX, 0.0),),
    ),
    _by_sequence("exp", np.exp, Loops(vector(2), vector(2), None)),
    _by_sequence("log", np.log, Loops(vector(60), vector(15), None)),
    _function(
        "sqrt",
        _in_floats(np.sqrt),
        ulps=1,
        priced_as=Loops(single(23), single(23), single(110)),
        sequence="sqrt",
    ),
    _function(
        "reciprocal",
        _reciprocal,
        ulps=1,
        priced_as=Loops(vector(5), vector(15), None),
        compiled=(ScalarStep(Opcode.DIV, 1.0, first=True),),
    ),
    _by_sequence("tanh", np.tanh, Loops(vector(5), vector(1), None)),
    _by_sequence("sigmoid", _sigmoid, Loops(vector(5), vector(2), None), _ULPS + 2),
    _function(
        "neg",
        _negate,
        priced_as=Loops(vector(1), vector(1), single(2)),
        compiled=(ScalarStep(Opcode.SUB, -0.0, first=True),),
    ),
    _function(
        "abs",
        _ufunc(np.absolute),
        priced_as=Loops(single(1), single(1), single(2)),
        sequence="abs",
    ),
    _function(
        "square",
        _ufunc(np.square),
        ulps=1,
        priced_as=_VECTOR,
        compiled=(ScalarStep(Opcode.MUL, "itself"),),
    ),
    _function("less", _predicate(np.less), priced_as=_LESS),
    _function("less_equal", _predicate(np.less_equal), priced_as=_LESS_EQUAL),
    _function("greater", _predicate(np.greater), priced_as=_LESS),
    _function("greater_equal", _predicate(np.greater_equal), priced_as=_LESS_EQUAL),
    _function(
        "equal",
        _predicate(np.equal),
        priced_as=Loops(unrolled(14, 4), unrolled(9, 4), unrolled(29, 2)),
    ),
    _function("logical_and", _predicate(np.logical_and), priced_as="and"),
    _function("logical_or", _predicate(np.logical_or), priced_as="or"),
    _function("logical_not", _logical_not, priced_as="not"),
    _function("select", _select, priced_as="max"),
    _function(
        "leaky_relu",
        _leaky_relu,
        steps=2,
        sensitivity=_of_leaky_relu,
        priced_as="relu",
        sequence="leaky_relu",
    ),
    _function(
        "clip",
        _clip,
        steps=2,
        sensitivity=_of_clip,
        priced_as="max",
        compiled=(ScalarStep(Opcode.MAX, "parameter"), ScalarStep(Opcode.MIN, "parameter")),
    ),
    _function(
        "scale",
        _with_parameters(np.multiply),
        ulps=1,
        sensitivity=_of_scale,
        priced_as="mul",
        compiled=(ScalarStep(Opcode.MUL, "parameter"),),
    ),
    _function(
        "shift",
        _with_parameters(np.add),
        ulps=1,
        sensitivity=_of_shift,
        priced_as="add",
        compiled=(ScalarStep(Opcode.ADD, "parameter"),),
    ),
    _function(
        "power",
        _to_power,
        sensitivity=_of_power,
        priced_as="pow",
        sequence="pow",
        same_as={(2.0,): "square", (1.0,): "identity", (-1.0,): "reciprocal"},
    ),
    # log(1 + exp(a)) as log(exp(a) + exp(0)), so that no exponential overflows. Published is the
    # loop of that function of two operands; that the constant one costs nothing is assumed.
    _by_sequence("softplus", lambda x: np.logaddexp(x, 0.0), "logaddexp", _ULPS + 2),
    _function("floor", _to_whole(np.floor), priced_as=_ROUNDING),
    _function("sign", _ufunc(np.sign), priced_as=Loops(vector(5), vector(5), single(5))),
    _function("ceil", _to_whole(np.ceil), priced_as=_ROUNDING),
    _function(
        "round",
        _to_whole(np.rint),
        priced_as=_ROUNDING,
        # The operand of this step is not used.
        compiled=(ScalarStep(Opcode.ROUND, 0.0),),
    ),
    _by_sequence("erf", erf, _ASSUMED),
    _by_sequence("sin", np.sin, _SIN_LOOPS),
    _by_sequence("cos", np.cos, _COS_LOOPS),
    _by_sequence("tan", np.tan, _TAN_LOOPS),
    _by_sequence("asin", np.arcsin, Loops(single(102), single(102), None)),
    _by_sequence("acos", np.arccos, Loops(single(102), single(102), None)),
    _by_sequence("atan", np.arctan, _ASSUMED),
    _by_sequence("sinh", np.sinh, _ASSUMED),
    _by_sequence("cosh", np.cosh, _ASSUMED),
    _by_sequence("asinh", np.arcsinh, _ASSUMED),
    _by_sequence("acosh", np.arccosh, _ASSUMED),
    _by_sequence("atanh", np.arctanh, _ASSUMED),
    _function("mod", _ufunc(np.remainder), ulps=1, priced_as=_REMAINDER),
    _function("fmod", _ufunc(np.fmod), priced_as=_REMAINDER),
    _function("is_nan", _is_nan, priced_as=Loops(vector(3), vector(3), None)),
    _function("is_inf", _is_inf, priced_as=Loops(vector(3), vector(5), None)),
    _function("bitwise_and", _on_bits(np.bitwise_and), ulps=1, priced_as=_BITS),
    _function("bitwise_or", _on_bits(np.bitwise_or), ulps=1, priced_as=_BITS),
    _function("bitwise_xor", _on_bits(np.bitwise_xor), ulps=1, priced_as=_BITS),
    _function(
        "bitwise_not", _on_bits(np.bitwise_not), ulps=1, priced_as=Loops(None, None, vector(1))
    ),
    _function("shift_left", _on_bits(np.left_shift), ulps=1, priced_as=_BITS),
    _function("shift_right", _on_bits(np.right_shift), ulps=1, priced_as=_BITS),
    # Assumed: a comparison that keeps or drops a value costs as much as the comparison alone.
    _function("gate", _gate, priced_as="less"),
    _function("match", _match, priced_as="equal"),
    _function("random_bits", _random_bits, priced_as=_PHILOX),
    _function("to_nearest", round_to_nearest, priced_as="cast"),
    *(
        _function(
            name, kernel, sensitivity=one_step, sensitivity_is_absolute=True, priced_as="cast"
        )
        for name, kernel in (
            (DRAWN, round_somehow),
            (BY_WORD, round_by_word),
            (STOCHASTIC, round_stochastically),
        )
    ),
    _function("to_code", to_code, sensitivity=unless_whole, priced_as=_CODES),
    _function("from_code", from_code, ulps=1, priced_as=_CODES),
    # The difference, its product with the scale, and the product with the number are rounded.
    _function("packed_mul", _packed_mul, ulps=3, steps=2, sensitivity=_of_packed, priced_as="mul"),
)
"""The numerics and prices of all functions of FUNCTIONS, by name."""


def register_scalar_function(function: ScalarFunction, owner: str) -> None:
    """Register a user's function: bodies and chains may name it, and codelets compute and price it.

    Raises InputError if its name is taken, or if it is priced as a function without a price.
    """
    other = function.priced_as
    if isinstance(other, str) and other and loops_of(other) is None:
        known = ", ".join(sorted({*PUBLISHED, *SCALAR_FUNCTIONS}))
        raise InputError(
            f"{owner}: scalar function {function.name!r}: priced as {other!r}; need one of {known}"
        )
    register_function(function, owner)
    add_entry(SCALAR_FUNCTIONS, "codelet", function.name, function, owner)


def loops_of(name: str) -> Loops | None:
    """The inner loops of a function, by its own name or by poplibs's; None if they are unknown."""
    function = SCALAR_FUNCTIONS.get(name)
    return PUBLISHED.get(name) if function is None else function.loops


def scalar_function(name: str) -> ScalarFunction:
    """The scalar function of that name. Raises ValueError, with all names, if there is none."""
    function = SCALAR_FUNCTIONS.get(name)
    if function is None:
        raise ValueError(f"no scalar function {name}; there are {', '.join(SCALAR_FUNCTIONS)}")
    return function
