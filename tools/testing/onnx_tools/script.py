"""The text of the script that shows a finding without abele."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from pathlib import Path

from .known import Tool
from .process import ADAPTERS

HEAD = '''"""{headline}

    python reproduce.py

Needs numpy, onnx and {needs}. Exit status: 1 if the failure is shown, 0 if it is not, 2 if the tool
cannot be imported. It was found with version {version}.
"""

from __future__ import annotations

'''

TAIL = '''

# The finding.

MADE = {made!r}
OPTION = {option!r}
WITHOUT = {without!r}
FOUND_WITH = {version!r}
SECONDS = {seconds!r}
MODELS = {models!r}


def read(folder, what, model):
    """The arrays of a folder in the order of their numbers, by name."""
    files = sorted(folder.glob(what + "_*.pb"), key=lambda each: int(each.stem.split("_")[1]))
    tensors = [onnx.TensorProto.FromString(each.read_bytes()) for each in files]
    return {{each.name: numpy_helper.to_array(each) for each in tensors}}


def results(model, inputs):
    """What the tool makes of the model: its outputs, or those of the transformed model."""
    if MADE == "run":
        return run(model, inputs, OPTION, WITHOUT)
    declared = [(v.name, v.type.tensor_type.elem_type) for v in model.graph.output]
    after = transform(model, OPTION, WITHOUT)
    print("The transformed model:")
    print(onnx.printer.to_text(after.graph))
    onnx.checker.check_model(after, full_check=True)
    found = [(v.name, v.type.tensor_type.elem_type) for v in after.graph.output]
    if found != declared:
        raise SystemExit(f"outputs are declared as {{found}}; need {{declared}}")
    held = {{each.name for each in after.graph.input}}
    given = {{name: array for name, array in inputs.items() if name in held}}
    names = [each.name for each in after.graph.output]
    return dict(zip(names, ReferenceEvaluator(after).run(None, given)))


def compare(wanted, bounds, found):
    """Exit with status 1 if a result is further off than rounding explains."""
    for name, right in wanted.items():
        if name not in found:
            raise SystemExit(f"output {{name!r}} is missing")
        there, bound = np.asarray(found[name]), bounds[name]
        if there.shape != right.shape or there.dtype != right.dtype:
            raise SystemExit(
                f"output {{name!r}} is {{there.dtype}}{{list(there.shape)}}; "
                f"need {{right.dtype}}{{list(right.shape)}}"
            )
        with np.errstate(all="ignore"):
            a, b = right.astype(np.float64), there.astype(np.float64)
            near = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= bound)
            near |= np.isinf(bound)
        if not near.all():
            at = tuple(np.argwhere(~near)[0])
            with np.printoptions(threshold=64):
                print(f"expected {{name!r}}:", right, f"found {{name!r}}:", there, sep="\\n")
            raise SystemExit(f"output {{name!r}}, element {{list(map(int, at))}}: "
                             f"{{there[at]}}; need {{right[at]}} within {{bound[at]}}")


def show():
    """Apply the tool here, and compare: with what is expected, or on two equivalent models."""
    here = Path(__file__).resolve().parent
    first = None
    for name, data in MODELS:
        model = onnx.load(here / name)
        folder = here / data
        found = results(model, read(folder, "input", model))
        wanted, bounds = read(folder, "output", model), read(folder, "bound", model)
        if len(MODELS) == 1:
            compare(wanted, bounds, found)
        elif first is None:
            first = {{n: np.asarray(a) for n, a in found.items()}}, bounds
        else:
            both = {{n: b / 2 + bounds[n] / 2 if n in bounds else b for n, b in first[1].items()}}
            print("two equivalent models are compared, and no reference")
            compare({{n: a for n, a in first[0].items() if n in both}}, both, found)


def main():
    """Apply the tool in a process of its own, which may crash or hang."""
    try:
        now = version()
    except ImportError as error:
        print(error)
        return 2
    if now != FOUND_WITH:
        print(f"found with version {{FOUND_WITH}}; this is version {{now}}")
    try:
        done = subprocess.run([sys.executable, __file__, "--here"], timeout=SECONDS)
    except subprocess.TimeoutExpired:
        print(f"the tool does not end in {{SECONDS}} s")
        return 1
    if done.returncode < 0:
        print(f"the tool ended by signal {{-done.returncode}}")
    print("shown" if done.returncode else "not shown")
    return 1 if done.returncode else 0


if __name__ == "__main__":
    if "--here" in sys.argv:
        show()
    else:
        sys.exit(main())
'''

IMPORTS = """import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

"""


def script_of(
    tool: Tool,
    headline: str,
    version: str,
    made: str,
    without: list[str],
    seconds: float,
    models: list[tuple[str, str]],
) -> str:
    """The script that shows a finding.

    Args:
        models: the files of the models, each with the folder of its inputs and outputs.
    """
    needs = tool.package or "the tool"
    body = adapter_text(tool)
    tail = TAIL.format(
        made=made,
        option=tool.option,
        without=without,
        version=version,
        seconds=seconds,
        models=models,
    )
    quiet = headline.replace("\\", "/").replace('"""', "'''")
    head = HEAD.format(headline=textwrap.fill(quiet, 98), needs=needs, version=version or "unknown")
    return head + IMPORTS + body + tail


def adapter_text(tool: Tool) -> str:
    """The source of the functions that call a tool, without its docstring and future imports."""
    if tool.function is not None:
        return _text_of_function(tool.function)
    text = (ADAPTERS / f"{tool.adapter}.py").read_text(encoding="utf-8")
    first = ast.parse(text).body[1:]
    begin = next(
        node.lineno
        for node in first
        if not (isinstance(node, ast.ImportFrom) and node.module == "__future__")
    )
    return "\n".join(text.splitlines()[begin - 1 :]).rstrip() + "\n"


def _text_of_function(function: Callable[..., object]) -> str:
    """Functions that call a Python function: imported from its file, or written out."""
    name = getattr(function, "__qualname__", "")
    named = "<" not in name and name
    try:
        file = inspect.getsourcefile(function)
    except TypeError:
        file = None
    lines = ["from importlib.util import module_from_spec, spec_from_file_location", ""]
    if named and file:
        lines += [
            f'spec = spec_from_file_location("own", {str(Path(file).resolve())!r})',
            "own = module_from_spec(spec)",
            "spec.loader.exec_module(own)",
            f"mine = own.{name}",
        ]
    else:
        try:
            source = textwrap.dedent(inspect.getsource(function))
        except (OSError, TypeError):
            source = "# The function has no source: define it here.\n"
        lines = ["# Names that the function takes from around it must be defined here.", source]
        lines.append(f"mine = {getattr(function, '__name__', 'mine')}")
    return "\n".join((*lines, *_CALLS))


_CALLS = (
    "",
    "",
    "def version():",
    '    return ""',
    "",
    "",
    "def transform(model, option, without):",
    "    found = mine(model)",
    "    return model if found is None else found",
    "",
    "",
    "def run(model, inputs, option, without):",
    "    found = mine(model, inputs)",
    "    names = [each.name for each in model.graph.output]",
    "    return found if isinstance(found, dict) else dict(zip(names, found))",
    "",
)
