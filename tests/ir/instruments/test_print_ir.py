from io import StringIO
from pathlib import Path

import pytest
from some_passes import Append, Crash, Nothing
from xdsl.dialects.builtin import ModuleOp

from abele.ir.context import AbeleContext
from abele.ir.instruments.print_ir import EVERY, Chosen, PrintIR, Style, into_stream, into_tree
from abele.ir.pass_manager import PassManager


def headings(chosen: Chosen) -> list[str]:
    """What is printed of a pipeline whose second pass changes the module and whose last fails."""
    stream = StringIO()
    instruments = (PrintIR(chosen, into_stream(stream)),)
    with pytest.raises(RuntimeError):
        PassManager((Nothing(), Append(), Crash()), instruments).run(AbeleContext(), ModuleOp([]))
    lines = stream.getvalue().splitlines()
    return [line.split("IR Dump ")[1].split(" //")[0] for line in lines if "IR Dump" in line]


@pytest.mark.parametrize(
    ("chosen", "printed"),
    [
        (Chosen(), []),
        (Chosen(before=EVERY), ["Before nothing", "Before append", "Before crash"]),
        (Chosen(before=("append",)), ["Before append"]),
        (Chosen(after=EVERY), ["After nothing", "After append", "After failed crash"]),
        (Chosen(after=("nothing",)), ["After nothing"]),
        (Chosen(on_change=True), ["After append"]),
        (Chosen(on_failure=True), ["After failed crash"]),
    ],
)
def test_the_chosen_stages_are_printed(chosen: Chosen, printed: list[str]):
    assert headings(chosen) == printed


def test_a_tree_has_one_file_per_pass(tmp_path: Path):
    instruments = (PrintIR(Chosen(EVERY, EVERY), into_tree(tmp_path), Style(generic=True)),)
    PassManager((Nothing(), Append()), instruments).run(AbeleContext(), ModuleOp([]))
    folder = tmp_path / "builtin_module_no-symbol-name"
    assert {each.name for each in folder.iterdir()} == {
        "0_nothing.before.mlir",
        "0_nothing.mlir",
        "1_append.before.mlir",
        "1_append.mlir",
    }
    assert '"builtin.module"() ({' in (folder / "1_append.mlir").read_text()
