"""Write a model as a program for other compilers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from ...backends.levels import initial_states
from ...dialects.host import host_names
from ...dialects.levels import NN, STABLEHLO, level_of
from ...ir.pass_manager import PassManager
from ...ir.support.arrays import Array
from ...ir.support.errors import InputError
from ...ir.upstream import Printer
from ...passes.pipelines import FROM_SOURCES
from .arrays import write_npz
from .compile_anew import read_model
from .example import check_example, example_of
from .extensions.loaded import Extensions
from .files import write_bytes
from .program import entry, signature
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

    Raises InputError for a model below nn, for an example that is none of its inputs, and for what
    the dialect does not have.

    Args:
        request: not settled; its example gives sizes to free dimensions.
        dialect: one of DIALECTS.
        passes: run on nn before; a level stands for the passes that lead there.
        arguments: whether states that the program only reads are arguments of @main too.
    """
    if dialect not in DIALECTS:
        raise InputError(f"--to {dialect}: need one of {', '.join(DIALECTS)}")
    context = extensions.context()
    program = read_model(request.with_sizes(), context)
    module, level = program.module, level_of(program.module)
    if level not in (NN, STABLEHLO):
        raise InputError(f"{program.path}: a program of {level}; need one of nn or above")

    def run(spec: str) -> None:
        PassManager(extensions.pipeline(spec, "", NN)).run(context, module)

    run(",".join(FROM_SOURCES.get(level, ())))
    if request.example is not None:
        inputs = signature(module, program.path).inputs
        check_example(example_of(request.example), inputs, request.values or ())
    run(passes)
    if level_of(module) != NN:
        raise InputError(
            f"--passes {passes}: lead to {level_of(module)}; need passes that leave nn"
        )
    # Passes may change states, and the conversion leaves none.
    states = initial_states(module)
    run(f"convert-nn-to-{dialect}{{arguments={str(arguments).lower()}}}")
    main = entry(module, program.path)
    inputs = host_names(main, "arg_names", len(main.function_type.inputs))
    outputs = host_names(main, "result_names", len(main.function_type.outputs))
    stream = StringIO()
    Printer(stream, print_generic_format=True).print_op(module)
    kept = {name: states[name] for name in inputs if name in states}
    return Exported(stream.getvalue() + "\n", tuple(inputs), tuple(outputs), kept)
