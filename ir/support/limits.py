"""The limits that abele sets on what it reads and runs.

Each limit stops input that would take forever, or all memory. Its message names it, and the
environment variable that changes it. docs/reference/limits.md lists them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from .errors import InputError

PREFIX = "ABELE_MOST_"
"""The names of the environment variables begin with this."""


@dataclass(frozen=True)
class Limit:
    """A limit on a count.

    Attributes:
        name: what is counted, in the plural.
        default: the most that is allowed unless the environment says otherwise.
        meaning: one sentence for the documentation.
        called: the end of the variable's name, if it is not the name in capitals.
    """

    name: str
    default: int
    meaning: str
    called: str = ""

    @property
    def variable(self) -> str:
        """The environment variable that changes the limit."""
        return PREFIX + (self.called or self.name.upper().replace(" ", "_"))

    @property
    def most(self) -> int:
        """The most that is allowed now. Raises InputError if the variable is no such number."""
        text = os.environ.get(self.variable)
        if text is None:
            return self.default
        if not (text.isascii() and text.isdigit() and len(text) <= 18 and int(text)):
            raise InputError(f"{self.variable}={text[:40]!r}; need an integer from 1 to 10^18 - 1")
        return int(text)

    def refusal(self, what: str, most: int | None = None) -> str:
        """A message that something exceeds the limit.

        Args:
            what: the thing, its place and its size.
            most: the most that is allowed, if the caller has set it.
        """
        allowed = f"{what}; at most {self.most if most is None else most:,} {self.name} are allowed"
        return f"{allowed} ({self.variable} changes it)" if most in (None, self.most) else allowed


ITERATIONS = Limit(
    "iterations",
    200_000,
    "Iterations of all loops together, plus calls of functions, in one run of a program.",
    "TURNS",
)

STRICT_ITERATIONS = Limit(
    "strict iterations",
    20_000,
    "As iterations, for a strict run, which takes many times as long.",
    "STRICT_TURNS",
)

NESTED_CALLS = Limit("nested calls", 64, "Calls within calls in a program.")

NESTED_LOOPS = Limit(
    "nested loops", 8, "Loops within loops, also through calls, in a program that is compiled."
)

ALIAS_PARTS = Limit(
    "alias parts",
    1_000_000,
    "Aliases that an alias at the top of a module stands for, once all of them are replaced.",
)

NESTED_BRACKETS = Limit(
    "nested brackets",
    64,
    "Brackets within brackets in rules, targets, pipelines and the text of a module.",
)

INTEGER_BITS = Limit(
    "integer bits",
    4096,
    "The size of an integer in a rule or a target, and of integers that conditions compute.",
)

LIST_ITEMS = Limit(
    "list items", 1_000_000, "The length of a list that the conditions of a rule compute."
)

MATCH_STEPS = Limit(
    "match steps",
    100_000,
    "Steps to match one @commutative rule at one operation. Only patterns in which names occur "
    "several times, or in conditions on several names, take many.",
)

LISTED_SUPERSTEPS = Limit(
    "listed supersteps",
    10_000,
    "Supersteps that `abele memory` looks at one by one, where functions are called repeatedly. "
    "Beyond it, the variables of a function count as live from its first call to its last.",
)

POINTS = Limit(
    "points",
    1 << 42,
    "Points of an operation's space, such as the products of a matmul. Lookups may have more.",
)

TABLE_ELEMENTS = Limit(
    "table elements",
    1 << 25,
    "Elements of a table that an importer computes, such as positions, a mask or a window.",
)

INLINED_NODES = Limit(
    "inlined nodes",
    1 << 18,
    "Nodes of the functions of a model, once every call is replaced by the function's nodes. "
    "Functions that call others twice grow exponentially.",
)

SWEEP_POINTS = Limit(
    "sweep points",
    100_000,
    "Points of a sweep that are computed. A sweep at random may choose among more.",
)

LIMITS = (
    ITERATIONS,
    STRICT_ITERATIONS,
    NESTED_CALLS,
    NESTED_LOOPS,
    ALIAS_PARTS,
    NESTED_BRACKETS,
    INTEGER_BITS,
    LIST_ITEMS,
    MATCH_STEPS,
    LISTED_SUPERSTEPS,
    POINTS,
    TABLE_ELEMENTS,
    INLINED_NODES,
    SWEEP_POINTS,
)
"""All limits, in the order of the documentation."""


def short(number: int) -> str:
    """A number for a message: its digits, or how many bits it has if it is long."""
    return f"{number:,}" if abs(number) < 10**24 else f"a number of {number.bit_length():,} bits"
