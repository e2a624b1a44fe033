"""Scalar terms: what one element of a result is, as an expression of elements of the operands.

Element types are named as in the text of the IR, such as "f32", "i8", "ui16" and "i1".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...ir.support.hash_once import hash_once
from ...ir.support.same_number import same_number, same_numbers


@hash_once
@dataclass(frozen=True)
class Var:
    """An unknown number: an element of an operand.

    Attributes:
        name: two variables with the same name and type are the same number.
    """

    name: str
    dtype: str


@hash_once
@dataclass(frozen=True)
class Const:
    """A known number. Truth values are 0 and 1 of type "i1".

    Attributes:
        value: an integer if the type is one, else a float, which may be infinite, NaN or -0.0.
    """

    value: float
    dtype: str

    def __eq__(self, other: object) -> bool:
        """True for the same number of the same type, including the sign of zero."""
        if not isinstance(other, Const):
            return NotImplemented
        both_nan = self.value != self.value and other.value != other.value
        return self.dtype == other.dtype and (both_nan or same_number(self.value, other.value))

    def __hash__(self) -> int:
        """A hash that every NaN shares."""
        return hash((self.dtype, self.value if self.value == self.value else None))


@hash_once
@dataclass(frozen=True)
class Apply:
    """A scalar function of other terms.

    Attributes:
        function: its name in the table of scalar functions. "identity" of a term of another type is
            a cast, and "bitcast" sees the same bits as another type.
        args: its operands, in order.
        dtype: the type of the result.
        parameters: the function's constants, such as the factor of "scale".
    """

    function: str
    args: tuple[Term, ...]
    dtype: str
    parameters: tuple[float, ...] = ()

    def __eq__(self, other: object) -> bool:
        """True for the same function of the same terms, with the same parameters."""
        if not isinstance(other, Apply):
            return NotImplemented
        return (
            (self.function, self.dtype) == (other.function, other.dtype)
            and same_numbers(self.parameters, other.parameters)
            and self.args == other.args
        )

    def __hash__(self) -> int:
        """A hash of the whole term."""
        return hash((self.function, self.dtype, self.parameters, self.args))


@hash_once
@dataclass(frozen=True)
class Merge:
    """Terms that a combiner merges in any order: a sum, an extreme or a product.

    Attributes:
        combiner: "sum", "max", "min" or "prod". The merge of no terms is the combiner's identity.
        args: the merged terms; the same term may occur several times.
        dtype: the type of the result. Narrow floats are merged in a wider type and rounded once.
    """

    combiner: str
    args: tuple[Term, ...]
    dtype: str


Term = Var | Const | Apply | Merge


def operands(term: Term) -> tuple[Term, ...]:
    """The terms directly below a term."""
    return term.args if isinstance(term, Apply | Merge) else ()


def subterms(term: Term) -> Iterator[Term]:
    """Every different subterm, each after its own operands; the term itself is the last."""
    seen: set[Term] = set()
    waiting: list[tuple[Term, bool]] = [(term, False)]
    while waiting:
        each, done = waiting.pop()
        if done:
            yield each
        elif each not in seen:
            seen.add(each)
            waiting.append((each, True))
            waiting += [(below, False) for below in reversed(operands(each))]


def variables(term: Term) -> tuple[Var, ...]:
    """The variables of a term, each once."""
    return tuple(each for each in subterms(term) if isinstance(each, Var))


def replaced(term: Term, values: Mapping[Var, Term]) -> Term:
    """The term with other terms in the place of variables."""
    made: dict[Term, Term] = {}
    for each in subterms(term):
        if isinstance(each, Var):
            made[each] = values.get(each, each)
        elif isinstance(each, Apply):
            below = tuple(made[arg] for arg in each.args)
            made[each] = Apply(each.function, below, each.dtype, each.parameters)
        elif isinstance(each, Merge):
            made[each] = Merge(each.combiner, tuple(made[arg] for arg in each.args), each.dtype)
        else:
            made[each] = each
    return made[term]


def text(term: Term) -> str:
    """A term as people read it, such as "add(x, 2.0)"."""
    if isinstance(term, Var):
        return term.name
    if isinstance(term, Const):
        return f"{term.value}"
    name = term.combiner if isinstance(term, Merge) else term.function
    if isinstance(term, Apply) and name == "identity":
        name = f"as {term.dtype}"
    constants = [f"{each:g}" for each in term.parameters] if isinstance(term, Apply) else []
    return f"{name}({', '.join([*map(text, term.args), *constants])})"
