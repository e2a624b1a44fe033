"""A program under test: a module, its context, its target and one set of inputs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ....backends.target import Target, named_target
from ....dialects.levels import all_users_dialects, known_level, level_of
from ....ir.context import AbeleContext
from ....ir.level import Level
from ....ir.support.errors import InputError
from ....ir.support.whole_folder import whole_folder
from ....ir.text import print_module, read_module, write_module
from ....ir.upstream import ModuleOp, VerifyException
from ....ir.verify import verify
from ...driver.arrays import Array, read_npz, seeded, write_npz
from ...driver.context import new_context
from ...driver.program import signature
from .sketch import Sketch

KIND = "a failing program that abele saved"

SHOWN = 16
"""The text of a program shows the elements of constants with at most this many elements."""

MODULE = "program.mlir"
INPUTS = "inputs.npz"
ABOUT = "replay.json"


class Program:
    """A module of any level, its context, and inputs by name.

    The repr of a program is its text, because the repr of an operation walks the whole program many
    times.

    Attributes:
        target: the machine that it is or will be planned for.
        source: for a program of a lower level, the module of nn that it was lowered from, which
            defines what it has to compute.
        sketch: the sketch that it was generated from, or None.
        key: identifies a program that was generated without a sketch; "" otherwise.
        plans: the seed of its plans if check_pipeline plans it at random; None if the planner plans
            it.
    """

    def __init__(
        self,
        module: ModuleOp,
        context: AbeleContext,
        inputs: Mapping[str, Array],
        target: Target,
        *,
        source: ModuleOp | None = None,
        sketch: Sketch | None = None,
        key: str = "",
        plans: int | None = None,
    ) -> None:
        self.module = module
        self.context = context
        self.inputs = dict(inputs)
        self.target = target
        self.source = source
        self.sketch = sketch
        self.key = key
        self.plans = plans

    @property
    def level(self) -> Level:
        """The lowest level of any operation in the module."""
        return level_of(self.module)

    @property
    def state(self) -> dict[str, Array]:
        """The initial values of states, by name."""
        found: dict[str, Array] = {}
        for op in self.module.body.block.ops:
            value = op.properties.get("value") or op.properties.get("initial")
            name = op.properties.get("sym_name")
            array = getattr(value, "array", None)
            if array is not None and name is not None:
                found[str(getattr(name, "data", name))] = array
        return found

    @property
    def text(self) -> str:
        """The module in readable text, without locations."""
        return print_module(self.module, locations=False, numbers=SHOWN)

    def source_program(self) -> Program:
        """The program that this one was lowered from, or itself if it was not lowered."""
        if self.source is None:
            return self
        return Program(self.source, self.context, self.inputs, self.target)

    def with_module(self, module: ModuleOp) -> Program:
        """A program with another module and the same context and target, without source and sketch.

        Inputs of the same name and type keep their values; new inputs get seeded values.
        """
        wanted = signature(module).inputs
        kept = {
            each.name: array
            for each in wanted
            if (array := self.inputs.get(each.name)) is not None
            and (array.shape, array.dtype) == (each.shape, each.dtype)
        }
        inputs = {**seeded(wanted), **kept}
        return Program(module, self.context, inputs, self.target, plans=self.plans)

    def meaning(self, module: ModuleOp) -> Program:
        """The program as a module of one of abele's levels that means the same."""
        return Program(module, self.context, self.inputs, self.target)

    def clone(self) -> Program:
        """The same program with a module of its own."""
        return Program(
            self.module.clone(),
            self.context,
            self.inputs,
            self.target,
            source=self.source,
            sketch=self.sketch,
            key=self.key,
            plans=self.plans,
        )

    def save(self, folder: Path, about: Mapping[str, object] | None = None) -> None:
        """Write the module, blobs, inputs and target to a folder.

        Raises InputError.

        An existing folder is replaced only if it holds a saved program that nobody has changed.

        Args:
            about: more entries for the record, replay.json.
        """
        record = {"target": self.target.spelling(), "plans": self.plans, **(about or {})}
        with whole_folder(folder, KIND) as made:
            write_module(self.module, made / MODULE, numbers=SHOWN)
            write_npz(made / INPUTS, self.inputs)
            (made / ABOUT).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

    @staticmethod
    def load(
        folder: Path, context: AbeleContext | None = None
    ) -> tuple[Program, dict[str, object]]:
        """A saved program and its record. Raises InputError."""
        context = context or new_context(all_users_dialects())
        module = read_module(folder / MODULE, context)
        try:
            about: dict[str, object] = json.loads((folder / ABOUT).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{folder / ABOUT}: cannot be read: {error}") from None
        inputs = read_npz(folder / INPUTS, signature(module).inputs)
        target, plans = named_target(str(about["target"])), about.get("plans")
        seed = plans if isinstance(plans, int) else None
        return Program(module, context, inputs, target, plans=seed), about

    def __repr__(self) -> str:
        """The text, headed by the target."""
        return f"// {self.target.spelling()}\n{self.text}"


def invalidity(module: ModuleOp) -> str | None:
    """The error of the verifier for a module; None if the module is valid."""
    try:
        verify(module, known_level(module))
    except VerifyException as error:
        return str(error)
    return None
