"""Proves that two programs compute the same: translation validation at nn.

Both are written as one term for each element of each result, at the sizes that the programs have.
Inputs are the same by their place. A difference is run before it is reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from time import process_time
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue

from ...dialects import nn
from ...dialects.levels import NN, level_of
from ...ir.context import AbeleContext
from ...ir.provenance import place
from ...ir.support.errors import InputError, one_line
from ...ir.support.number_kinds import is_floating
from ...ir.upstream import ModuleOp
from ...ir.well_known import ENTRY
from ..driver.arrays import Array, seeded
from ..driver.program import signature
from ..testing.generators.program import Program
from ..testing.generators.sketch import machine_of
from ..testing.oracle.oracles import bounded_run
from ..testing.search.failures import Wrong
from ..testing.search.judge import disagreement
from ..testing.search.run import Refused
from .bodies import Undecided
from .deciding import decided
from .outcomes import Outcome, worst
from .terms import Term, Var, replaced, variables
from .unrolled import Unrolled

SECONDS = 60.0
"""The processor time for two programs, if none is given."""
RUNS = 5
"""The inputs that programs are run on if nothing is proved."""
MACHINE = "tiny:1"
"""The machine that programs name. Nothing is planned for it."""
STATES = (nn.LoadOp, nn.StoreOp, nn.StateOp)
PLACE = re.compile(r"(\d+)\[([\d,]*)\]$")
"""The name of an element: the number of its input, and its index."""

Kind: TypeAlias = Literal["proved", "not decided", "different"]


@dataclass(frozen=True)
class Validation:
    """Whether two programs compute the same.

    Attributes:
        outcome: what is equal, if it is proved.
        reason: why it is not decided, or what differs.
        elements: how many elements of results were compared.
        tested: on how many inputs the programs agreed, if it is not decided.
        example: inputs for which results differ, by name.
        seconds: of processor time.
    """

    kind: Kind
    outcome: Outcome = field(default_factory=Outcome)
    reason: str = ""
    elements: int = 0
    tested: int = 0
    example: Mapping[str, Array] = field(default_factory=dict[str, Array])
    seconds: float = 0.0

    @property
    def equality(self) -> str:
        """What is equal, in words; "" if it is not proved."""
        return self.outcome.text if self.kind == "proved" else ""

    @property
    def passed(self) -> bool:
        """Whether no difference is known."""
        return self.kind != "different"

    @property
    def text(self) -> str:
        """The verdict in words, with the example."""
        if self.kind == "proved":
            return f"proved for all values: {self.equality} ({self.elements} elements)"
        if self.kind == "not decided":
            return f"not decided: {self.reason}; the results agree on {self.tested} inputs"
        return "\n".join([f"different: {self.reason}", "where", *self.shown])

    @property
    def shown(self) -> list[str]:
        """The inputs of the example as lines of text."""
        return [f"  {name} = {_shown(values)}" for name, values in self.example.items()]


def _shown(values: Array) -> str:
    text = np.array2string(values.astype(np.float64), threshold=64, separator=", ")
    return text.replace("\n", "\n    ")


def validate(
    before: ModuleOp,
    after: ModuleOp,
    context: AbeleContext,
    *,
    names: tuple[str, str] = ("before", "after"),
    seconds: float = SECONDS,
) -> Validation:
    """Whether a module of nn computes the same before and after a change.

    Raises InputError for modules that are not of nn, have control flow or states, or take or give
    other tensors than each other.

    Args:
        names: what messages call the modules.
        seconds: of processor time.
    """
    begin = process_time()
    mains = [_main(module, name) for module, name in zip((before, after), names, strict=True)]
    _same_types(mains[0], mains[1], names)
    pair = _Pair((before, after), (mains[0], mains[1]), context, begin + seconds)
    return replace(pair.verdict(), seconds=process_time() - begin)


def _main(module: ModuleOp, name: str) -> func.FuncOp:
    """The only function of a module, which a proof can read. Raises InputError."""
    if level_of(module) != NN:
        raise InputError(f"{name}: a module of level {level_of(module).name}; need one of nn")
    functions = [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]
    main = next((each for each in functions if each.sym_name.data == ENTRY), None)
    if main is None or not main.body.blocks:
        raise InputError(f"{name}: no function @{ENTRY} with a body; proofs compare this function")
    for op in main.walk():
        if op is not main and (problem := _unfit(op)):
            raise InputError(f"{name}: {op.name} at {place(op)}: {problem}")
    return main


def _unfit(op: Operation) -> str:
    """Why a proof cannot read an operation; "" if it may."""
    if isinstance(op, STATES):
        return "proofs compare programs without states"
    if isinstance(op, func.CallOp):
        return "proofs compare programs of one function; inline the call first"
    if op.regions and any(region.blocks for region in op.regions):
        return "proofs compare programs of one block, without control flow"
    return ""


def _same_types(one: func.FuncOp, other: func.FuncOp, names: tuple[str, str]) -> None:
    """Raises InputError if two functions take or give different tensors."""
    for what, mine, theirs in (
        ("input", one.function_type.inputs.data, other.function_type.inputs.data),
        ("result", one.function_type.outputs.data, other.function_type.outputs.data),
    ):
        if len(mine) != len(theirs):
            raise InputError(
                f"{names[0]} has {len(mine)} {what}s, {names[1]} has {len(theirs)}; need as many"
            )
        for i, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            if a != b:
                raise InputError(f"{what} {i} is {a} in {names[0]} and {b} in {names[1]}")


@dataclass
class _Pair:
    """Two programs that are compared.

    Attributes:
        end: of the processor time.
    """

    modules: tuple[ModuleOp, ModuleOp]
    mains: tuple[func.FuncOp, func.FuncOp]
    context: AbeleContext
    end: float

    def verdict(self) -> Validation:
        try:
            outcome, count = self._outcome()
        except Undecided as reason:
            return self._not_decided(str(reason))
        if outcome.verdict == "different" or outcome.special == "differ":
            values = outcome.model or outcome.special_model
            inputs = self._inputs(values)
            wrong = self._wrong(inputs)
            if wrong is not None:
                return Validation("different", reason=wrong.text, example=inputs)
            if not outcome.proved:
                return self._not_decided("elements differ, but a run of both programs does not")
        if outcome.proved:
            return Validation("proved", outcome, elements=count)
        return self._not_decided(outcome.reason)

    def _outcome(self) -> tuple[Outcome, int]:
        """How equal all elements of all results are, and their number. Raises Undecided."""
        left, right = (_results(main) for main in self.mains)
        pairs = dict.fromkeys(zip(left, right, strict=True))
        known: dict[tuple[Term, Term], Outcome] = {}
        outcomes: list[Outcome] = []
        for pair in pairs:
            key, back = _renamed(pair)
            if key not in known:
                known[key] = decided(key[0], key[1], (), self.end - process_time())
            outcome = _with_names(known[key], back)
            outcomes.append(outcome)
            if not outcome.proved:
                break
        return worst(outcomes), len(left)

    def _not_decided(self, reason: str) -> Validation:
        for seed in range(RUNS):
            inputs = seeded(signature(self.modules[0]).inputs, seed)
            wrong = self._wrong(inputs)
            if wrong is not None:
                return Validation("different", reason=wrong.text, example=inputs)
        return Validation("not decided", reason=reason, tested=RUNS)

    def _wrong(self, inputs: Mapping[str, Array]) -> Wrong | None:
        """What differs if both programs are run on some inputs; None if nothing does."""
        machine = machine_of(MACHINE)
        first = Program(self.modules[0], self.context, inputs, machine)
        renamed = zip(signature(self.modules[1]).inputs, inputs.values(), strict=True)
        other = {each.name: values for each, values in renamed}
        second = Program(_with_names_of(self.modules), self.context, other, machine)
        try:
            return disagreement(bounded_run(first), second)
        except Refused as refused:
            raise InputError(f"the programs cannot be run: {refused}") from None
        except MemoryError:
            raise
        except ValueError as error:
            raise InputError(f"the programs cannot be run: {one_line(error)}") from None

    def _inputs(self, values: Mapping[str, float]) -> dict[str, NDArray[Any]]:
        """Inputs with given values of elements. Others are 1."""
        tensors = signature(self.modules[0]).inputs
        made = [np.ones(each.shape, each.dtype) for each in tensors]
        for element, number in values.items():
            found = PLACE.match(element)
            if found is None:
                continue
            array = made[int(found[1])]
            index = tuple(int(each) for each in found[2].split(",") if each)
            with np.errstate(over="ignore"):
                if is_floating(array.dtype):
                    array[index] = np.float64(number).astype(array.dtype)
                else:
                    array[index] = dtype_of(array)(int(number))
        return {each.name: array for each, array in zip(tensors, made, strict=True)}


def dtype_of(array: Array) -> Callable[[int], object]:
    """What makes an element of an array from an integer."""
    return bool if array.dtype.kind == "b" else cast(Callable[[int], object], array.dtype.type)


def _with_names_of(modules: tuple[ModuleOp, ModuleOp]) -> ModuleOp:
    """The second module, with the names that the first one has for its results."""
    one, other = modules
    made = other.clone()
    for each in made.body.block.ops:
        if isinstance(each, func.FuncOp) and each.sym_name.data == ENTRY:
            named = next(
                op
                for op in one.body.block.ops
                if isinstance(op, func.FuncOp) and op.sym_name.data == ENTRY
            )
            each.attributes.pop("result_names", None)
            if "result_names" in named.attributes:
                each.attributes["result_names"] = named.attributes["result_names"]
    return made


def _results(main: func.FuncOp) -> list[Term]:
    """The terms of all elements of all results. Raises Undecided."""
    names: dict[SSAValue, str] = {arg: str(i) for i, arg in enumerate(main.body.block.args)}
    elements = Unrolled(names)
    end = main.body.block.last_op
    assert end is not None
    return [term for value in end.operands for term in elements.of(value).reshape(-1)]


def _renamed(pair: tuple[Term, Term]) -> tuple[tuple[Term, Term], dict[str, str]]:
    """Two terms with plain names in the order in which variables occur, and the names of before.

    Elements whose terms differ in names only are compared once.
    """
    found = dict.fromkeys(each for term in pair for each in variables(term))
    plain = {each: Var(f"v{i}", each.dtype) for i, each in enumerate(found)}
    values = cast("Mapping[Var, Term]", plain)
    renamed = (replaced(pair[0], values), replaced(pair[1], values))
    return renamed, {plain[each].name: each.name for each in found}


def _with_names(outcome: Outcome, names: Mapping[str, str]) -> Outcome:
    if not outcome.model and not outcome.special_model:
        return outcome
    return replace(
        outcome,
        model={names.get(name, name): value for name, value in outcome.model.items()},
        special_model={names.get(n, n): value for n, value in outcome.special_model.items()},
    )
