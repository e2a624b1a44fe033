import subprocess
import sys
from collections.abc import Generator
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import onnx
import pytest
from some_models import model, node
from typer.testing import CliRunner, Result

from abele.backends.codelets.prices import PRICED_AS
from abele.backends.codelets.scalar import SCALAR_FUNCTIONS
from abele.backends.target import USERS_TARGETS
from abele.dialects.levels import USERS_DIALECTS, legal_ops
from abele.dialects.structured import FUNCTIONS
from abele.ir import rules
from abele.ir.errors import InputError
from abele.ir.user_entries import remove_entries
from abele.passes.pipelines import LEVELS
from abele.tools import compile_model, extensions
from abele.tools.cli import app
from abele.tools.extensions import Extension, load_extensions

SOFT = '''
"""A softplus of one's own."""

from dataclasses import dataclass, replace

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.ir import Dialect
from xdsl.irdl import irdl_op_definition
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from abele.backends.codelets.scalar import ScalarFunction, computed_by
from abele.backends.target import MK2
from abele.dialects import nn
from abele.dialects.nn import NN
from abele.dialects.nn.elementwise import UnaryOp
from abele.ir.provenance import LocatingWalker
from abele.passes.decompose import Decompose
from abele.tools.extensions import onnx_operator


@irdl_op_definition
class SoftplusOp(UnaryOp):
    """log(1 + exp(a))."""

    name = "mine.softplus"


Mine = Dialect("mine", [SoftplusOp], [])

SOFTPLUS = ScalarFunction(
    "softplus", 1, computed_by(lambda x: np.log1p(np.exp(x))), ulps=24, priced_as="exp"
)

SMALL = replace(MK2, name="small", tiles=8)


class ReluToSoftplus(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: nn.ReluOp, rewriter: PatternRewriter) -> None:
        rewriter.replace(op, SoftplusOp(op.operand))


@dataclass(frozen=True)
class SmoothRelu(ModulePass):
    """Put softplus in place of relu. nn -> nn, values change.

    limit: how many at most. share: of what.
    """

    name = "smooth-relu"
    limit: int = 3
    share: float | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        LocatingWalker(ReluToSoftplus()).rewrite_module(op)


@onnx_operator("Softplus", "com.example")
def softplus(node):
    return node.add(SoftplusOp(node[0]))
'''

RELU = """
builtin.module {
  func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> attributes {arg_names = ["x"], \
result_names = ["y"]} {
    %0 = nn.relu %x : (tensor<64xf32>) -> tensor<64xf32>
    func.return %0 : tensor<64xf32>
  }
}
"""

HEAD = """
from dataclasses import dataclass
from xdsl.passes import ModulePass

@dataclass(frozen=True)
class Mine(ModulePass):
"""

BODY = """
    def apply(self, ctx, op):
        pass
"""


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Generator[None]:
    """Whatever a test loads is taken back; reproducers go to the test's folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(extensions, "_PARTS", {})
    yield
    for part in extensions._PARTS.values():
        remove_entries(part.owner)


@pytest.fixture
def soft(tmp_path: Path) -> Path:
    path = tmp_path / "soft.py"
    path.write_text(SOFT)
    return path


@pytest.fixture
def relu(tmp_path: Path) -> Path:
    path = tmp_path / "relu.mlir"
    path.write_text(RELU)
    return path


def abele(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def softplus(x: np.ndarray) -> np.ndarray:
    return np.log1p(np.exp(x.astype(np.float64)))


# What one file may bring


def test_a_file_with_pass_dialect_function_and_target_runs_on_the_machine(soft: Path, relu: Path):
    down = ("-p", "nn,smooth-relu,partition,tile,exchange")
    files = ("--outputs", "y.npz", "--inputs", "x.npz", "--profile", "p.json")
    x = np.linspace(-4, 4, 64, dtype=np.float32)
    np.savez("x.npz", x=x)
    result = abele("run", relu, "--load", soft, "--target", "small", *down, *files, "--strict")
    assert result.exit_code == 0, result.stderr
    assert "mk2:8,name=small" in result.stdout
    with np.load("y.npz") as stored:
        np.testing.assert_allclose(stored["y"], softplus(x), rtol=1e-5)


def test_a_users_operation_is_printed_parsed_priced_and_checked(soft: Path, relu: Path):
    made = abele("opt", relu, "--load", soft, "-p", "smooth-relu", "-o", "out.mlir")
    assert made.exit_code == 0, made.stderr
    assert "mine.softplus" in Path("out.mlir").read_text()
    result = abele("run", "out.mlir", "--load", soft, "--target", "tiny", "--check")
    assert result.exit_code == 0, result.stderr
    assert "1 operations" in result.stdout
    assert PRICED_AS["softplus"] == "exp"
    exp = Path("exp.mlir")
    exp.write_text(RELU.replace("nn.relu", "nn.exp"))
    mine, plain = compile_model("out.mlir", "tiny", load=[soft]), compile_model(exp, "tiny")
    assert mine.profile["cycles"] == plain.profile["cycles"] > 0


@pytest.mark.parametrize("level", LEVELS)
def test_a_users_operation_runs_at_every_level(soft: Path, relu: Path, level: str):
    relu.write_text(RELU.replace("nn.relu", "mine.softplus"))
    exe = compile_model(relu, "tiny", load=[soft])
    x = np.linspace(-2, 2, 64, dtype=np.float32)
    np.testing.assert_allclose(exe.run({"x": x}, at=level)["y"], softplus(x), rtol=1e-5)


def test_a_saved_program_needs_its_extension_where_its_levels_are_read(soft: Path, relu: Path):
    relu.write_text(RELU.replace("nn.relu", "mine.softplus"))
    made = abele("compile", relu, "--load", soft, "--target", "tiny", "-o", "p.abele")
    assert made.exit_code == 0, made.stderr
    result = abele("run", "p.abele", "--load", soft, "--check")
    assert result.exit_code == 0, result.stderr


def test_a_users_function_imports_an_operator(soft: Path):
    proto = model([node("Softplus", "x", "y", domain="com.example")], {"x": [3]}, ["y"])
    proto.opset_import.append(onnx.helper.make_opsetid("com.example", 1))
    exe = compile_model(proto, "tiny", load=[soft])
    x = np.array([-1, 0, 1], np.float32)
    np.testing.assert_allclose(exe.run({"x": x})["y"], softplus(x), rtol=1e-5)


def test_only_what_a_file_defines_is_taken(soft: Path):
    found = load_extensions([soft])
    assert [dialect.name for dialect in found.dialects] == ["mine"]
    assert set(found.passes) - set(load_extensions().passes) == {"smooth-relu"}
    assert set(found.targets) == {"small"}
    assert not list(soft.parent.glob("__pycache__"))


def test_composites_are_legal_before_decompose_only(tmp_path: Path, relu: Path):
    path = tmp_path / "twice.py"
    path.write_text("""
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Dialect
from xdsl.irdl import irdl_op_definition, operand_def
from abele.dialects import nn
from abele.dialects.nn import CompositeOp

@irdl_op_definition
class TwiceOp(CompositeOp):
    name = "twofold.twice"
    operand = operand_def(TensorType)
    assembly_format = "$operand attr-dict `:` functional-type(operands, results)"

    def infer(self):
        return nn.tensor_of(self.operand)

    def parts(self, made):
        return made("twice", nn.AddOp(self.operand, self.operand))

Twofold = Dialect("twofold", [TwiceOp], [])
""")
    relu.write_text(RELU.replace("nn.relu", "twofold.twice"))
    exe = compile_model(relu, "tiny", load=[path])
    x = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(exe.run({"x": x})["y"], 2 * x)
    assert "twofold" in legal_ops("nn")
    assert not {"twofold", "twofold.twice"} & legal_ops("nn-core")


def test_a_target_file_is_named_after_itself(tmp_path: Path, relu: Path):
    (tmp_path / "bench.toml").write_text('base = "mk2"\ntiles = 6\n')
    result = abele("run", relu, "--load", "bench.toml", "--target", "bench")
    assert result.exit_code == 0, result.stderr
    assert "mk2:6,name=bench" in result.stdout
    assert abele("run", relu, "--load", "bench.toml", "--target", "bench:3").exit_code == 0
    spec = "plan-splits{target=bench},convert-nn-to-partition"
    assert "mk2:6" in abele("opt", relu, "--load", "bench.toml", "-p", spec).stdout


def test_rules_are_a_pass_named_after_their_file(soft: Path, relu: Path, tmp_path: Path):
    (tmp_path / "flat_only.rw").write_text(
        "rule softer: nn.relu(x) => mine.softplus(x) where flat(x)\n"
    )
    (tmp_path / "guards.py").write_text(
        "from abele.ir.rules import guard\nfrom xdsl.ir import SSAValue\n"
        "@guard\ndef flat(value: SSAValue) -> bool:\n    return len(value.type.get_shape()) == 1\n"
    )
    load = ("--load", "flat_only.rw", "--load", "guards.py", "--load", soft)
    result = abele("opt", relu, *load, "-p", "flat-only", "--statistics")
    assert result.exit_code == 0, result.stderr
    assert "mine.softplus" in result.stdout
    assert "1 rewrite by softer (flat_only.rw:1)" in result.stderr


NEVER = "rule never: nn.relu(x) => nn.abs(x) where rank(x) < 0\n"


@pytest.mark.parametrize(
    ("name", "like"),
    [("my rules", "my-rules"), ("Rules", "rules"), ("2x", "x"), ("_", "my-rules")],
)
def test_a_file_of_rules_that_cannot_name_a_pass_is_to_be_renamed(
    tmp_path: Path, name: str, like: str
):
    path = tmp_path / f"{name}.rw"
    path.write_text("rule r: nn.relu(x) => nn.abs(x)\n")
    with pytest.raises(InputError) as refused:
        load_extensions([path])
    message = str(refused.value)
    assert message.startswith(f"{path}: its rules become a pass named after it")
    assert message.endswith(f"rename it to small letters, digits and dashes, such as '{like}'")


def test_what_rules_warn_of_is_said_once(relu: Path, tmp_path: Path):
    (tmp_path / "odd.rw").write_text(NEVER)
    result = abele("opt", relu, "--load", "odd.rw", "--load", "./odd.rw", "-p", "odd")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == (
        "odd.rw:1:6: warning: rule never: no program was found that it fits; its types are "
        f"checked at each rewrite\n{NEVER}     ^~~~~\n"
    )


def test_checks_of_rules_are_loaded_with_the_first_rules_only():
    loaded = "import sys, abele.tools.driver.compile; print('abele.ir.rules.check' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


def test_rules_are_checked_again_only_when_they_are_others(tmp_path: Path):
    path, guards = tmp_path / "one.rw", tmp_path / "guards.py"
    source = (
        "from abele.ir.rules import guard\nfrom xdsl.ir import SSAValue\n"
        "@guard\ndef fine(value: SSAValue) -> bool:\n    return {}\n"
    )

    def loaded() -> tuple[object, tuple[str, ...]]:
        found = load_extensions([path, guards])
        return found.passes["one"], found.warnings

    path.write_text(NEVER)
    guards.write_text(source.format("True"))
    first = loaded()
    assert loaded() == first
    assert len(first[1]) == 1
    path.write_text("rule off: nn.relu(x) => nn.max(x, x) where fine(x)")
    second = loaded()
    assert second[0] is not first[0]
    assert second[1] == ()
    guards.write_text(source.format("False"))
    third = loaded()
    assert third[0] is not second[0]
    assert "no program was found" in third[1][0]


def test_rules_in_python_are_a_pass_named_after_their_file(tmp_path: Path, relu: Path):
    (tmp_path / "soft_rules.py").write_text(f"""{SOFT}
from abele.ir.rules import rewrite

@rewrite("nn.relu(x)")
def softer(x):
    return SoftplusOp(x)
""")
    load = ("--load", "soft_rules.py", "--load", "./soft_rules.py")
    result = abele("opt", relu, *load, "-p", "soft-rules", "--statistics")
    assert result.exit_code == 0, result.stderr
    assert "mine.softplus" in result.stdout
    assert "1 rewrite by softer (soft_rules.py:" in result.stderr
    (tmp_path / "bad_rules.py").write_text(
        "from abele.ir.rules import rewrite\n\n@rewrite('nn.rule(x)')\ndef f(x):\n    return x\n"
    )
    bad = abele("opt", relu, "--load", "bad_rules.py")
    assert bad.exit_code == 2
    assert bad.stderr.startswith("error: bad_rules.py:3:")


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
        "from abele.ir.rules import rewrite\nfrom ops_of_mine import SoftplusOp\n\n"
        '@rewrite("nn.relu(x)")\ndef softer(x):\n    return SoftplusOp(x)\n'
    )
    (tmp_path / "takes.rw").write_text("rule back: mine.softplus(x) => nn.exp(x)\n")
    load = [arg for name in order for arg in ("--load", f"{name}.py")]
    result = abele("opt", relu, *load, "--load", "takes.rw", "-p", "makes,takes")
    assert result.exit_code == 0, result.stderr
    assert "nn.exp" in result.stdout


def test_users_rules_may_call_abeles_own_guards(tmp_path: Path, relu: Path):
    (tmp_path / "floats.rw").write_text("rule e: nn.relu(x) => nn.exp(x) where is_float(x)\n")
    result = abele("opt", relu, "--load", "floats.rw", "-p", "floats")
    assert result.exit_code == 0, result.stderr
    assert "nn.exp" in result.stdout


TURNED = """
func.func @main(%x: tensor<4x6xf32>) -> tensor<6x4xf32> {
  %0 = nn.transpose %x [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  func.return %0 : tensor<6x4xf32>
}
"""


def test_what_no_pass_has_taken_down_is_refused_not_passed_over(tmp_path: Path):
    own = Path(rules.__file__).parents[2] / "passes" / "rules" / "tile_to_exchange.rw"
    laws = own.read_text()
    copy = next(line for line in laws.split("\n") if line.startswith("lower copy:"))
    (tmp_path / "most.rw").write_text(laws.replace(copy, ""))
    spec = "nn,partition,tile,schedule-supersteps,allocate,group-supersteps,most"
    turned = Path("turned.mlir")
    turned.write_text(TURNED)
    result = abele("run", turned, "--target", "tiny:4", "--load", "most.rw", "-p", spec)
    assert result.exit_code == 2
    assert "tile.copy" in result.stderr


def test_a_changed_file_is_loaded_anew(soft: Path):
    first = load_extensions([soft])
    assert load_extensions([soft]).passes["smooth-relu"] is first.passes["smooth-relu"]
    soft.write_text(SOFT.replace("smooth-relu", "smoother").replace("exp", "log"))
    again = load_extensions([soft])
    assert "smoother" in again.passes
    assert "smooth-relu" not in again.passes
    assert PRICED_AS["softplus"] == "log"


def test_a_refused_file_leaves_nothing_behind(soft: Path):
    soft.write_text(SOFT.replace('name="small"', 'name="mk1"'))
    with pytest.raises(InputError, match="target 'mk1' is there already, from abele"):
        load_extensions([soft])
    for table in (FUNCTIONS, SCALAR_FUNCTIONS, PRICED_AS, USERS_DIALECTS, USERS_TARGETS):
        assert not {"softplus", "mine", "small", "mk1"} & set(table) or table is PRICED_AS
    assert "softplus" not in PRICED_AS


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


def test_a_part_that_cannot_be_added_leaves_nothing_behind(
    soft: Path, monkeypatch: pytest.MonkeyPatch
):
    def fails(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(extensions, "_check_pass", fails)
    with pytest.raises(RuntimeError):
        load_extensions([soft])
    assert "softplus" not in {*FUNCTIONS, *SCALAR_FUNCTIONS, *PRICED_AS}


# Packages


def test_an_installed_package_is_loaded_without_asking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relu: Path
):
    (tmp_path / "whitepoplar.py").write_text(
        f"{HEAD}    name = 'poplar'\n{BODY}\nfrom abele.tools.extensions import Extension\n"
        "GATHERED = Extension(passes=[Mine])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for value in ("whitepoplar", "whitepoplar:GATHERED"):
        points = (EntryPoint("white", value, extensions.GROUP),)
        monkeypatch.setattr(extensions, "_entry_points", lambda points=points: points)
        assert "poplar" in load_extensions().passes
        result = abele("opt", relu, "-p", "poplar")
        assert result.exit_code == 0, result.stderr


def test_a_package_that_cannot_be_loaded_is_named(monkeypatch: pytest.MonkeyPatch):
    points = (EntryPoint("white", "no_such_package", extensions.GROUP),)
    monkeypatch.setattr(extensions, "_entry_points", lambda: points)
    with pytest.raises(InputError, match=r"installed extension white \(no_such_package\): cannot"):
        load_extensions()


def test_parts_of_an_extension_are_added_once():
    one = Extension(passes=[], functions=[SCALAR_FUNCTIONS["exp"]])
    assert (one + one).functions == (SCALAR_FUNCTIONS["exp"],)


# What is wrong with a file

BAD_FILES = {
    "syntax": ("x = (\n", "bad.py:1: not Python: '(' was never closed"),
    "import": ("\nimport no_such_module\n", "bad.py:2: ModuleNotFoundError: No module named"),
    "crash": ("def f():\n    return 1 / 0\n\nf()\n", "bad.py:2: ZeroDivisionError: division"),
    "exit": ("import sys\nsys.exit(3)\n", "bad.py:2: SystemExit: 3"),
    "nothing": ("x = 1\n", "bad.py: nothing to add to abele; looked for subclasses of ModulePass"),
    "imported only": ("from abele.dialects.nn import NN\n", "bad.py: nothing to add to abele"),
    "taken pass": (f"{HEAD}    name = 'decompose'\n{BODY}", "bad.py: pass 'decompose' is there"),
    "a level": (f"{HEAD}    name = 'tile'\n{BODY}", "pass 'tile' is there already, from abele"),
    "bad name": (
        f"{HEAD}    name = 'my_pass'\n{BODY}",
        "pass 'my_pass' of class Mine; need a name",
    ),
    "no apply": (f"{HEAD}    name = 'mine'\n", "pass 'mine': need a method apply(self, ctx, op)"),
    "no option": (
        f"{HEAD}    name = 'mine'\n    table: dict[str, int] = None\n{BODY}",
        "bad.py: pass 'mine': option 'table' is a dict[str, int], which no pipeline can give",
    ),
    "no dataclass": (
        f"{HEAD}    name = 'mine'\n    limit: int = 1\n{BODY}".replace(
            "@dataclass(frozen=True)", ""
        ),
        "limit is no option yet; need @dataclass(frozen=True) above class Mine",
    ),
    "taken dialect": (
        "from xdsl.ir import Dialect\nMine = Dialect('nn', [], [])\n",
        "bad.py: dialect 'nn' is there already, from abele",
    ),
    "foreign operation": (
        SOFT.replace('Dialect("mine"', 'Dialect("yours"'),
        "dialect 'yours': operation mine.softplus; need names that begin with 'yours.'",
    ),
    "no dialect": (
        SOFT.replace("Mine = Dialect", "Dialect"),
        "operation mine.softplus of class SoftplusOp is in no dialect; need Dialect('mine', [",
    ),
    "no function": (
        SOFT.replace("SOFTPLUS = ScalarFunction", "ScalarFunction"),
        "applies the scalar function 'softplus', which there is not; need ScalarFunction(",
    ),
    "abstract operation": (
        SOFT.replace("(UnaryOp)", "(nn.CompositeOp)"),
        "operation mine.softplus of class SoftplusOp: need infer, parts",
    ),
    "taken function": (
        SOFT.replace('"softplus", 1', '"exp", 1'),
        "bad.py: scalar function 'exp' is there already, from abele",
    ),
    "no price": (
        SOFT.replace('priced_as="exp"', 'priced_as="exq"'),
        "scalar function 'softplus': priced as 'exq'; need one of",
    ),
    "taken operator": (
        SOFT.replace('"Softplus", "com.example"', '"Softplus"'),
        "bad.py: ONNX operator 'ai.onnx.Softplus' is there already, from abele",
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


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("none.py", "none.py: cannot be read: No such file"),
        ("none.rw", "none.rw: cannot be read: No such file"),
        ("none.toml", "none.toml: cannot be read: No such file"),
        ("notes.txt", "notes.txt: what kind of extension is it? need .py, .toml, .rw"),
        (".", "what kind of extension is it?"),
        ("folder.py", "folder.py: cannot be read: Is a directory"),
        ("empty.rw", "empty.rw: nothing to add to abele; looked for rules"),
        ("bad.rw", "bad.rw:1:"),
        ("bad.toml", "bad.toml"),
    ],
)
def test_bad_paths(tmp_path: Path, relu: Path, path: str, says: str):
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "empty.rw").write_text("// none\n")
    (tmp_path / "bad.rw").write_text("rule\n")
    (tmp_path / "bad.toml").write_text("base = 'mk9'\n")
    for command in (("run", relu), ("compile", relu, "-o", "p.abele"), ("opt", relu)):
        result = abele(*command, "--load", path)
        assert result.exit_code == 2, result.output
        assert says in result.stderr
        assert "Traceback" not in result.stderr


def test_two_files_with_one_name_are_both_named(soft: Path, tmp_path: Path):
    (tmp_path / "other.py").write_text(SOFT)
    with pytest.raises(InputError, match=r"other.py: scalar function 'softplus' .* from .*soft.py"):
        load_extensions([soft, tmp_path / "other.py"])


def test_two_files_with_one_pass_are_both_named(tmp_path: Path):
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(f"{HEAD}    name = 'mine'\n{BODY}")
    with pytest.raises(InputError, match=r"^b.py: pass 'mine' is there already, from a.py"):
        load_extensions(["a.py", "b.py"])


# A pass that fails

BROKEN = """
from dataclasses import dataclass
from xdsl.dialects.builtin import TensorType, f32
from xdsl.passes import ModulePass
from abele.dialects import nn

def helper(thing):
    return thing.no_such

@dataclass(frozen=True)
class Oops(ModulePass):
    name = "oops"
    def apply(self, ctx, op):
        for each in op.walk():
            if isinstance(each, nn.ReluOp):
                helper(each)

@dataclass(frozen=True)
class Breaks(ModulePass):
    name = "breaks"
    def apply(self, ctx, op):
        for each in op.walk():
            if isinstance(each, nn.ReluOp):
                each.result._type = TensorType(f32, [7])
"""


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "broken.py"
    path.write_text(BROKEN)
    return path


def test_a_failing_pass_shows_its_own_lines_only(broken: Path, relu: Path):
    down = ("-p", "oops,nn,partition,tile,exchange")
    result = abele("run", "relu.mlir", "--load", "broken.py", *down)
    assert result.exit_code == 2
    first, *rest = result.stderr.splitlines()
    problem = "AttributeError: 'ReluOp' object has no attribute 'no_such'"
    assert first.startswith("error: pass 'oops' (1 of ")
    assert first.endswith(f") failed at nn.relu, relu.mlir:4:5: {problem}")
    assert f'  File "{broken}", line 8, in helper' in rest
    assert f'  File "{broken}", line 16, in apply' in rest
    assert "pass_manager.py" not in result.stderr
    assert rest[-1].startswith("reproduce with: abele-opt abele-reproducer-oops/reproducer-01-oops")
    assert rest[-1].endswith("--load broken.py")


def test_the_command_that_reproduces_does(broken: Path, relu: Path):
    failed = abele("opt", "relu.mlir", "--load", "broken.py", "-p", "oops")
    command = failed.stderr.splitlines()[-1].removeprefix("reproduce with: abele-opt ").split()
    again = abele("opt", *command)
    assert again.exit_code == 2
    assert "'ReluOp' object has no attribute 'no_such'" in again.stderr
    assert "reproduce with" not in again.stderr, "it is its own reproducer"
    assert len(list(Path().glob("abele-reproducer-*"))) == 1


def test_a_fresh_folder_is_taken_for_each_failure(broken: Path, relu: Path):
    for name in ("abele-reproducer-oops", "abele-reproducer-oops-2"):
        abele("opt", "relu.mlir", "--load", "broken.py", "-p", "oops")
        assert (Path(name) / "reproducer-01-oops.mlir").exists()


def test_a_dump_holds_the_reproducer_too(broken: Path, relu: Path):
    down = ("-p", "oops,nn,partition,tile,exchange", "--dump-ir", "dump")
    abele("run", "relu.mlir", "--load", "broken.py", *down)
    assert (Path("dump") / "reproducer-01-oops.mlir").exists()
    assert not list(Path().glob("abele-reproducer-*"))


def test_a_pass_that_leaves_what_does_not_verify_is_bad_input(broken: Path, relu: Path):
    result = abele("opt", "relu.mlir", "--load", "broken.py", "-p", "breaks")
    assert result.exit_code == 2
    first, second = result.stderr.splitlines()
    assert first.startswith("error: after pass 'breaks' (1 of 1): nn.relu at relu.mlir:4:5: result")
    assert second.startswith("reproduce with: abele-opt ")


def test_a_function_that_fails_on_the_machine_is_its_users(soft: Path, relu: Path):
    soft.write_text(SOFT.replace("np.log1p(np.exp(x))", "np.no_such(x)"))
    relu.write_text(RELU.replace("nn.relu", "mine.softplus"))
    result = abele("run", relu, "--load", soft, "--target", "tiny")
    assert result.exit_code == 2
    assert "AttributeError: module 'numpy' has no attribute 'no_such'" in result.stderr
    assert "soft.py" in result.stderr


# Help


def test_a_users_pass_shows_its_options(soft: Path):
    listing = abele("opt", "--list-passes", "--load", soft).stdout
    assert "smooth-relu" in listing
    assert "limit: an integer, default 3; how many at most" in listing
    help_text = abele("opt", "--help-pass", "smooth-relu", "--load", soft).stdout
    assert "share: a number or nothing, default none; of what" in help_text


def test_an_option_of_a_wrong_type_is_said(soft: Path, relu: Path):
    result = abele("opt", relu, "--load", soft, "-p", "smooth-relu{limit=many}")
    assert result.exit_code == 2
    says = "pass 'smooth-relu': option 'limit': many; need an integer"
    assert result.stderr == f"error: {says}\n"
