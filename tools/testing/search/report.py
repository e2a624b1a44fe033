"""The counts of a check: programs, operations, rules and relations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation

from ....dialects.partition import PartitionTensor
from ....ir.upstream import ModuleOp
from ....ir.xdsl.walk import operations


@dataclass
class Report:
    """The counts of a check.

    Attributes:
        name: the name of the test or tool that ran the check, for summaries; "" if it is not known.
        level: the level of the programs, or a stage between levels; "" if it is not known.
        examples: programs that ran.
        refused: programs that a pass refused.
        unfit: programs that did not fit their machine.
        changed: programs that the passes changed.
        steps: programs that are training steps.
        changed_by: number of programs that each user's pass of a pipeline changed, by its name.
        by_kernels: programs that compiled kernels ran too.
        lacks_kernels: whether kernels could run none, because numba is missing or kernels are
            turned off.
        kernel_problems: the kernels that were not used, because they fail their self-test.
        undecided: programs whose results could not be compared, because a branch depended on
            rounding.
        seconds, cpu_seconds: time until the end or until the failure, without shrinking.
        exercised: number of programs with each operation, by its name, level and element type.
        fired: how often each rule fired, by its name.
        guards: how often each guard was true or false, by the rule's name, the guard's text and its
            result.
        held, skipped: number of programs for which each relation held, or did not apply, by its
            name.
        began_after: number of programs that could run only after a pass, by the name of the pass.
            Their results are compared with those of the program after it.
    """

    name: str = ""
    level: str = ""
    examples: int = 0
    refused: int = 0
    unfit: int = 0
    changed: int = 0
    steps: int = 0
    changed_by: Counter[str] = field(default_factory=Counter[str])
    by_kernels: int = 0
    lacks_kernels: bool = False
    kernel_problems: tuple[str, ...] = ()
    undecided: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    exercised: Counter[tuple[str, str, str]] = field(default_factory=Counter[tuple[str, str, str]])
    fired: Counter[str] = field(default_factory=Counter[str])
    guards: Counter[tuple[str, str, bool]] = field(default_factory=Counter[tuple[str, str, bool]])
    held: Counter[str] = field(default_factory=Counter[str])
    skipped: Counter[str] = field(default_factory=Counter[str])
    began_after: Counter[str] = field(default_factory=Counter[str])

    def to_record(self) -> dict[str, Any]:
        """All counts, for JSON."""
        return {
            name: [[key, count] for key, count in cast("Counter[Any]", value).items()]
            if isinstance(value, Counter)
            else value
            for name, value in vars(self).items()
        }

    @staticmethod
    def from_record(record: Mapping[str, Any]) -> Report:
        """The report of which to_record has made a record, perhaps through JSON."""
        found = Report()
        for name, value in vars(found).items():
            given: Any = record[name]
            if isinstance(value, Counter):
                pairs = cast("list[tuple[Any, int]]", given)
                given = Counter({_key(key): count for key, count in pairs})
            elif isinstance(value, tuple):
                given = tuple(given)
            setattr(found, name, given)
        return found

    def __str__(self) -> str:
        related = "".join(
            f", {name} held for {self.held[name]} and skipped for {self.skipped[name]}"
            for name in dict.fromkeys((*self.held, *self.skipped))
        )
        began = "".join(
            f", {count} compared with the program after {name}"
            for name, count in self.began_after.items()
        )
        steps = f", {self.steps} steps of training" if self.steps else ""
        kernels = f", {self.by_kernels} with compiled kernels too" if self.by_kernels else ""
        kernels += ", none with compiled kernels, which this host lacks" * self.lacks_kernels
        kernels += "".join(f", none with {each}" for each in self.kernel_problems)
        where = f" of {self.level}" if self.level else ""
        return (
            f"changed {self.changed} of {self.examples} programs{where} in {self.seconds:.1f} s, "
            f"{self.refused} refused, {self.unfit} did not fit, {self.undecided} undecided"
            f"{steps}{kernels}{began}{related}"
        )


def _key(key: str | Sequence[Any]) -> str | tuple[Any, ...]:
    """A key of a counter, of which JSON has made a list if it was a tuple."""
    return key if isinstance(key, str) else tuple(key)


def exercised(module: ModuleOp) -> Iterator[tuple[str, str, str]]:
    """The name, level and element type of each operation of a module that computes."""
    for op in operations(module):
        level, _, _ = op.name.partition(".")
        if level in ("builtin", "func"):
            continue
        yield op.name, level, _element(op)


def _element(op: Operation) -> str:
    for value in (*op.results, *op.operands):
        type_ = value.type.tensor if isinstance(value.type, PartitionTensor) else value.type
        if isinstance(type_, TensorType):
            return _element_name(cast("TensorType[Attribute]", type_).element_type)
    return ""


@lru_cache(maxsize=256)
def _element_name(element: Attribute) -> str:
    return str(element)
