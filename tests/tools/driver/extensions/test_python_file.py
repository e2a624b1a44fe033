from pathlib import Path

import pytest
from some_extensions import BODY, HEAD, SOFT, abele

from abele.backends.codelets.scalar import SCALAR_FUNCTIONS
from abele.ir import rules
from abele.ir.errors import InputError
from abele.tools.extensions import load_extensions


def test_a_file_may_import_its_neighbours(tmp_path: Path):
    (tmp_path / "names_of_mine.py").write_text("NAME = 'named'\n")
    path = tmp_path / "mine.py"
    path.write_text(f"from names_of_mine import NAME\n{HEAD}    name = NAME\n{BODY}")
    assert "named" in load_extensions([path]).passes


@pytest.mark.parametrize("order", [("ops_of_mine", "makes"), ("makes", "ops_of_mine")])
def test_a_file_that_is_loaded_and_imported_is_one_module(
    tmp_path: Path, relu: Path, order: tuple[str, str]
):
    (tmp_path / "ops_of_mine.py").write_text(SOFT)
    (tmp_path / "makes.py").write_text(
        "from abele.ir.rules import rewrite\nfrom ops_of_mine import SoftsignOp\n\n"
        '@rewrite("nn.relu(x)")\ndef softer(x):\n    return SoftsignOp(x)\n'
    )
    (tmp_path / "takes.rw").write_text("rule back: mine.softsign(x) => nn.exp(x)\n")
    load = [arg for name in order for arg in ("--load", f"{name}.py")]
    result = abele("opt", relu, *load, "--load", "takes.rw", "-p", "makes,takes")
    assert result.exit_code == 0, result.stderr
    assert "nn.exp" in result.stdout


def test_a_changed_file_is_loaded_anew(soft: Path):
    first = load_extensions([soft])
    assert load_extensions([soft]).passes["smooth-relu"] is first.passes["smooth-relu"]
    soft.write_text(SOFT.replace("smooth-relu", "smoother").replace("exp", "log"))
    again = load_extensions([soft])
    assert "smoother" in again.passes
    assert "smooth-relu" not in again.passes
    assert SCALAR_FUNCTIONS["softsign"].priced_as == "log"


GUARDS = """
from abele.ir.rules import guard, op_class
from xdsl.ir import Operation, SSAValue

@guard
def mine(value: SSAValue) -> bool:
    return True

@op_class
def ours(cls: type[Operation]) -> bool:
    return True
"""


@pytest.mark.parametrize(
    "after",
    ["1 / 0", "raise KeyboardInterrupt", "from abele.backends.target import MK2\nMINE = MK2"],
)
def test_guards_of_a_file_that_fails_are_taken_back(tmp_path: Path, after: str):
    path = tmp_path / "guards_that_fail.py"
    for _ in range(2):
        path.write_text(GUARDS + after)
        with pytest.raises((InputError, KeyboardInterrupt)):
            load_extensions([path])
        assert "mine" not in rules.library.FUNCTIONS
        assert "ours" not in rules.library.CLASSES
    path.write_text(GUARDS)
    load_extensions([path])
    assert "mine" in rules.library.FUNCTIONS
    path.write_text(GUARDS.replace("mine", "yours"))
    load_extensions([path])
    assert "mine" not in rules.library.FUNCTIONS
    rules.library.forget("guards_that_fail")
    assert not {"yours", "ours"} & {*rules.library.FUNCTIONS, *rules.library.CLASSES}


BAD_FILES = {
    "syntax": ("x = (\n", "bad.py:1: not Python: '(' was never closed"),
    "import": ("\nimport no_such_module\n", "bad.py:2: ModuleNotFoundError: No module named"),
    "crash": ("def f():\n    return 1 / 0\n\nf()\n", "bad.py:2: ZeroDivisionError: division"),
    "exit": ("import sys\nsys.exit(3)\n", "bad.py:2: SystemExit: 3"),
    "nothing": ("x = 1\n", "bad.py: no definitions for abele; looked for subclasses of ModulePass"),
    "imported only": ("from abele.dialects.nn import NN\n", "bad.py: no definitions for abele"),
    "taken pass": (f"{HEAD}    name = 'decompose'\n{BODY}", "bad.py: pass 'decompose' is already"),
    "a level": (f"{HEAD}    name = 'tile'\n{BODY}", "pass 'tile' is already defined by abele"),
    "bad name": (
        f"{HEAD}    name = 'my_pass'\n{BODY}",
        "pass 'my_pass' of class Mine; need a name",
    ),
    "no apply": (f"{HEAD}    name = 'mine'\n", "pass 'mine': need a method apply(self, ctx, op)"),
    "no option": (
        f"{HEAD}    name = 'mine'\n    table: dict[str, int] = None\n{BODY}",
        "bad.py: pass 'mine': option 'table' has type dict[str, int], which a pipeline cannot",
    ),
    "no dataclass": (
        f"{HEAD}    name = 'mine'\n    limit: int = 1\n{BODY}".replace(
            "@dataclass(frozen=True)", ""
        ),
        "limit is not an option yet; need @dataclass(frozen=True) above class Mine",
    ),
    "no level": (
        f"{HEAD}    name = 'mine'\n    takes = 'tile'\n{BODY}",
        "bad.py: pass 'mine': takes is 'tile'; need a Level, such as abele.dialects.levels.NN",
    ),
    "taken dialect": (
        "from xdsl.ir import Dialect\nMine = Dialect('nn', [], [])\n",
        "bad.py: dialect 'nn' is already defined by abele",
    ),
    "foreign operation": (
        SOFT.replace('Dialect("mine"', 'Dialect("yours"'),
        "dialect 'yours': operation mine.softsign; need names that begin with 'yours.'",
    ),
    "no dialect": (
        SOFT.replace("Mine = Dialect", "Dialect"),
        "operation mine.softsign of class SoftsignOp is in no dialect; need Dialect('mine', [",
    ),
    "no function": (
        SOFT.replace("SOFTSIGN = ScalarFunction", "ScalarFunction"),
        "applies the scalar function 'softsign', which does not exist; need ScalarFunction(",
    ),
    "abstract operation": (
        SOFT.replace("(UnaryOp)", "(nn.CompositeOp)"),
        "operation mine.softsign of class SoftsignOp: need infer, parts",
    ),
    "taken function": (
        SOFT.replace('"softsign", 1', '"exp", 1'),
        "bad.py: scalar function 'exp' is already defined by abele",
    ),
    "no price": (
        SOFT.replace('priced_as="exp"', 'priced_as="exq"'),
        "scalar function 'softsign': priced as 'exq'; need one of",
    ),
    "taken operator": (
        SOFT.replace('"Softsign", "com.example"', '"Softsign"'),
        "bad.py: ONNX operator 'ai.onnx.Softsign' is already defined by abele",
    ),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_bad_files(tmp_path: Path, relu: Path, kind: str):
    text, says = BAD_FILES[kind]
    (tmp_path / "bad.py").write_text(text)
    result = abele("run", relu, "--load", "bad.py")
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("error: bad.py")
    assert result.stderr.count("\n") == 1
    assert says in result.stderr
