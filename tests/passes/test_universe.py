import subprocess
import sys
from pathlib import Path

import pytest

RELU = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.softmax %x axis 0 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
"""


def xdsl_opt(*arguments: str | Path) -> str:
    command = Path(sys.executable).with_name("xdsl-opt")
    done = subprocess.run([command, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_xdsl_opt_runs_abeles_passes_on_its_dialects(tmp_path: Path):
    path = tmp_path / "softmax.mlir"
    path.write_text(RELU)
    assert "nn.exp" in xdsl_opt("-p", "decompose", path)
    down = "decompose,plan-splits{target=tiny},convert-nn-to-partition"
    assert "partition.compute" in xdsl_opt("-p", down, path)


@pytest.mark.slow
def test_xdsl_opt_reads_text_with_aliases_and_prints_the_inline_form(tmp_path: Path):
    path = tmp_path / "partition.mlir"
    path.write_text(
        "#rows = #abele.layout<[16 by 4, 4, 3, 16, 3] (d0, d1, d2, d3, d4) of [16, 4, 3, 16, 3]>\n"
        "func.func @main(%x: !partition.tensor<16x4x3x16x3xf32, #rows>) {\n"
        "  func.return\n}\n"
    )
    found = xdsl_opt(path)
    assert "!partition.tensor<16x4x3x16x3xf32, [16 by 4, 4, 3, 16, 3]" in found
    path.write_text(found)
    assert xdsl_opt(path) == found


RESHAPES = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.reshape %x to [2, 2] : (tensor<4xf32>) -> tensor<2x2xf32>
  %1 = nn.reshape %0 to [4] : (tensor<2x2xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}
"""


@pytest.mark.slow
def test_a_full_name_means_abeles_pass_even_if_xdsl_has_that_name(tmp_path: Path):
    path = tmp_path / "reshapes.mlir"
    path.write_text(RESHAPES)
    assert xdsl_opt("-p", "canonicalize", path).count("nn.reshape") == 2
    assert "nn.reshape" not in xdsl_opt("-p", "abele-canonicalize", path)


def test_every_pass_has_its_full_name_and_none_takes_xdsls():
    from abele.passes.names import XDSL_PASSES
    from abele.passes.pipelines import PASSES
    from abele.passes.universe import UNIVERSE

    for name in PASSES:
        assert UNIVERSE.all_passes[f"abele-{name}"]().name == f"abele-{name}"
    assert not set(UNIVERSE.all_passes) & set(XDSL_PASSES)


def test_dialects_and_passes_are_loaded_when_they_are_asked_for():
    script = (
        "import sys; from abele.passes.universe import UNIVERSE as u; "
        "before = 'abele.passes.decompose' in sys.modules; "
        "print(before, u.all_passes['decompose']().name, u.all_dialects['tile']().name)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "decompose", "tile"], done.stderr


PATCHES = """
import sys
from xdsl import ir, irdl
from xdsl.dialects import builtin, func
from xdsl.xdsl_opt_main import xDSLOptMain

def state():
    found = {}
    for module in (ir, irdl, builtin, func):
        for cls in vars(module).values():
            if isinstance(cls, type) and cls.__module__.startswith("xdsl."):
                found |= {(cls, name): id(value) for name, value in vars(cls).items()
                          if name in ("__hash__", "__eq__", "__getstate__") or callable(value)}
    for op in (builtin.ModuleOp, func.FuncOp, func.ReturnOp, func.CallOp):
        found[op, "definition"] = tuple(vars(op.get_irdl_definition()))
    return found

# Definitions and abstract classes are completed on first use: once before looking.
state()
before = state()
xDSLOptMain(args=[sys.argv[1], "-p", "abele-decompose,plan-splits{target=tiny},"
                  "convert-nn-to-partition,convert-partition-to-tile"]).run()
after = state()
print("changed:", sorted(f"{cls.__name__}.{name}" for (cls, name) in before
                         if before[cls, name] != after.get((cls, name))))
"""


def test_xdsl_opt_leaves_xdsl_unchanged(tmp_path: Path):
    path = tmp_path / "softmax.mlir"
    path.write_text(RELU)
    command = [sys.executable, "-c", PATCHES, path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "tile.compute_set" in done.stdout
    assert done.stdout.rstrip().endswith("changed: []")
