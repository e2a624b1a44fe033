"""Write a model as a program for other compilers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from ...backends.levels import initial_states
from ...dialects.host import host_names
from ...dialects.levels import NN, STABLEHLO, level_of
from ...ir.pass_manager import PassManager, parse_pipeline
from ...ir.support.arrays import Array
from ...ir.support.errors import InputError
from ...ir.upstream import Printer
from ...passes.pipelines import FROM_SOURCES
from .arrays import write_npz
from .compile_anew import read_model
from .extensions.loaded import Extensions
from .files import write_bytes
from .program import entry
from .request import Request

DIALECTS = ("stablehlo", "linalg")
"""What a model can be written in."""

PASSES = "decompose,fold-constants,canonicalize,eliminate-dead"
"""The passes that run on nn before, by default."""


@dataclass(frozen=True)
class Exported:
    """A program for other compilers.

    Attributes:
        text: in the generic form, which every program of MLIR reads.
        inputs, outputs: the names of the arguments and results of @main, in their order.
        states: the first values of the arguments that are states.
    """

    text: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    states: Mapping[str, Array]

    def write(self, path: Path) -> list[Path]:
        """Write the text, and the values of states to a file .npz beside it. Returns the files."""
        write_bytes(path, self.text.encode())
        if not self.states:
            return [path]
        values = path.with_suffix(".npz")
        write_npz(values, self.states)
        return [path, values]


def export(
    request: Request,
    extensions: Extensions,
    dialect: str,
    passes: str = PASSES,
    *,
    arguments: bool = False,
) -> Exported:
    """A model in another dialect.

    Raises InputError for a model below nn, and for what the dialect does not have.

    Args:
        dialect: one of DIALECTS.
        passes: run on nn before.
        arguments: whether states that the program only reads are arguments of @main too.
    """
    if dialect not in DIALECTS:
        raise InputError(f"--to {dialect}: need one of {', '.join(DIALECTS)}")
    context = extensions.context()
    program = read_model(request, context)
    module, level = program.module, level_of(program.module)
    if level not in (NN, STABLEHLO):
        raise InputError(f"{program.path}: a program of {level}; need one of nn or above")
    out = f"convert-nn-to-{dialect}{{arguments={str(arguments).lower()}}}"
    before = (*FROM_SOURCES.get(level, ()), *filter(None, [passes]))
    if before:
        PassManager(parse_pipeline(",".join(before), extensions.passes)).run(context, module)
    # Passes may change states, and the conversion leaves none.
    states = initial_states(module)
    PassManager(parse_pipeline(out, extensions.passes)).run(context, module)
    main = entry(module, program.path)
    inputs = host_names(main, "arg_names", len(main.function_type.inputs))
    outputs = host_names(main, "result_names", len(main.function_type.outputs))
    stream = StringIO()
    Printer(stream, print_generic_format=True).print_op(module)
    kept = {name: states[name] for name in inputs if name in states}
    return Exported(stream.getvalue() + "\n", tuple(inputs), tuple(outputs), kept)
