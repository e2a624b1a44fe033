"""The pages of docs/reference are what the definitions say, and what they say is complete."""

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import onnx
import pytest
import typer
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.test import TestOp
from xdsl.ir import Operation
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    result_def,
    traits_def,
)
from xdsl.traits import HasParent

from abele.backends.target import PRESETS, Target
from abele.backends.target.presets import PRESET_SOURCES
from abele.dialects import exchange, nn, partition, tile
from abele.dialects.abele import PlanAttr
from abele.dialects.levels import DIALECTS, load_dialect
from abele.dialects.nn.movement import PAD_MODES
from abele.dialects.scalar_functions import ARITHMETIC
from abele.dialects.steps import SYNC_ZONES
from abele.dialects.variable import ALIGNMENT
from abele.ir.pass_manager import load_pass
from abele.ir.pass_options import pass_options
from abele.passes.pipelines import PASSES
from abele.tools.cli import app
from abele.tools.manual.__main__ import write_reference
from abele.tools.manual.definitions import fields_of, marks, syntax
from abele.tools.manual.dialects import families, meanings
from abele.tools.manual.documents import document, parsed, without_errors
from abele.tools.manual.examples import flaw, flaw_of
from abele.tools.manual.markdown import NOTE, plain, prose, slug, table
from abele.tools.manual.passes import levels, rule_files
from abele.tools.manual.rules import rules_by_file
from abele.tools.manual.targets import EXAMPLE, facts

ROOT = Path(__file__).parents[2]
REFERENCE = (ROOT / "docs" / "reference").resolve()
DEFINED = [
    each
    for name in DIALECTS
    for each in (*load_dialect(name).operations, *load_dialect(name).attributes)
]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages as a process of their own makes them: tests register things of theirs here."""
    folder = tmp_path_factory.mktemp("reference")
    command = [sys.executable, "-m", "abele.tools.manual", str(folder)]
    subprocess.run(command, check=True, cwd=ROOT)
    return folder


def texts(folder: Path) -> dict[str, str]:
    paths = sorted(folder.rglob("*.md"))
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in paths}


def test_the_reference_pages_are_up_to_date(written: Path):
    there, wanted = texts(REFERENCE), texts(written)
    stale = sorted(
        path for path in {*there, *wanted} if there.get(path, "") != wanted.get(path, "")
    )
    assert not stale, f"docs/reference: {', '.join(stale)}: stale; run make reference"


def test_the_page_of_operators_is_up_to_date(written: Path):
    """The page names the version of onnx whose operators it lists."""
    there, wanted = (
        folder.parent.joinpath("operators.md").read_text(encoding="utf-8")
        for folder in (REFERENCE, written)
    )
    if f"every operator of onnx {onnx.__version__}," not in there:
        pytest.skip("the page lists another version's operators")
    assert there == wanted, "docs/operators.md: stale; run make reference"


def test_no_page_knows_where_it_was_made(written: Path):
    for path, text in texts(written).items():
        assert str(ROOT) not in text, path
        assert not re.search(r"\bobject at 0x|<(class|function) ", text), path


def test_every_link_leads_to_a_heading_or_a_file(written: Path):
    pages = texts(written)
    headings = {
        path: [slug(line.lstrip("#").strip()) for line in text.splitlines() if line[:1] == "#"]
        for path, text in pages.items()
    }
    for path, text in pages.items():
        assert len(set(headings[path])) == len(headings[path]), path
        for page, heading in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", text):
            target = (
                (REFERENCE / path).parent.joinpath(page).resolve() if page else REFERENCE / path
            )
            if not target.is_relative_to(REFERENCE):
                assert target.is_file(), (path, page)
                continue
            known = headings.get(str(target.relative_to(REFERENCE)))
            assert known is not None, (path, page)
            assert not heading or heading in known, (path, page, heading)


@pytest.mark.parametrize("cls", DEFINED, ids=lambda cls: cls.name)
def test_every_operation_and_attribute_has_an_example_that_parses(cls: type):
    assert flaw(cls) == ""
    assert document(cls).summary


@pytest.mark.parametrize("cls", [each for each in DEFINED if issubclass(each, Operation)])
def test_every_field_of_an_operation_but_for_results_has_a_meaning(cls: type[Operation]):
    said = meanings(cls)
    assert [f.name for f in fields_of(cls) if f.role != "result" and not said.get(f.name)] == []


@pytest.mark.parametrize(
    ("cls", "field", "values"),
    [
        (nn.PoolOp, "combiner", ARITHMETIC),
        (nn.ReduceOp, "combiner", ARITHMETIC),
        (nn.ScatterOp, "combiner", ARITHMETIC),
        (nn.PadOp, "mode", PAD_MODES),
        (tile.SyncOp, "zone", SYNC_ZONES),
        (exchange.VariableOp, "address", [str(ALIGNMENT)]),
    ],
)
def test_a_field_of_few_values_has_them_all_in_its_meaning(
    cls: type[Operation], field: str, values: Iterable[str]
):
    assert set(values) <= set(re.findall(r"\w+", meanings(cls)[field]))


def test_an_example_that_does_not_parse_is_reported():
    wrong = {
        "%1 = nn.relu %0 : (tensor<4xf32>) -> tensor<5xf32>": "need tensor<4xf32>",
        "%1 = nn.relu ...": "ParseError",
        "%1 = nn.abs %0 : (tensor<4xf32>) -> tensor<4xf32>": "shows no nn.relu",
    }
    for text, problem in wrong.items():
        assert problem in flaw_of(text, nn.ReluOp)
    assert "shows more than" in flaw_of("#abele.plan<split [2]>, #abele.body<relu>", PlanAttr)


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_says_what_it_does_from_where_to_where_and_what_its_options_mean(name: str):
    cls = load_pass(name, PASSES)
    assert document(cls).summary
    assert all(levels(cls))
    assert [option.name for option in pass_options(cls) if not option.meaning] == []


def test_every_file_of_rules_is_applied_by_a_pass():
    assert {file for name in PASSES for file in rule_files(name)} == set(rules_by_file())


def test_every_option_of_a_command_has_a_meaning():
    group = typer.main.get_command(app)
    for name, command in group.commands.items():
        assert command.help, name
        assert [each.name for each in command.params if not each.help] == [], name


def test_every_fact_of_a_target_has_a_mark_and_a_source():
    for name, target in PRESETS.items():
        for fact in facts(target, PRESET_SOURCES.get(name, {})).values():
            assert fact.mark in ("measured", "published", "assumed", "fitted", "given"), fact
            assert fact.source, fact


def test_old_pages_go_and_other_files_stay(tmp_path: Path):
    (tmp_path / "dialects").mkdir()
    (tmp_path / "dialects" / "gone.md").write_text(f"{NOTE}\n\n# Gone\n")
    (tmp_path / "own.md").write_text("# My notes\n")
    write_reference(tmp_path)
    assert not (tmp_path / "dialects" / "gone.md").exists()
    assert (tmp_path / "own.md").exists()


def test_syntax_is_as_people_write_it():
    assert syntax(nn.MatMulOp) == (
        "nn.matmul $lhs, $rhs [transpose_lhs]? [transpose_rhs]? [scale $scale]? [narrow_partials]? "
        "[into_i32]? {...} : (types of operands) -> types of results"
    )
    assert syntax(tile.VariableOp) == (
        "tile.variable $sym_name : $tensor layout $layout [state]? [= blob $initial]? {...}"
    )
    assert syntax(tile.OutputOp) == "tile.output $reads -> $host_name : $tensor {...}"


def test_fields_stand_in_the_order_in_which_they_are_written():
    fields = fields_of(nn.ConvOp)
    names = [field.name for field in fields]
    # A flag is written by its name alone.
    written = re.findall(r"\$(\w+)|\[(narrow_partials|into_i32)\]", syntax(nn.ConvOp))
    assert names == [*(name or flag for name, flag in written), "result"]
    by_name = {field.name: field for field in fields}
    assert (by_name["groups"].holds, by_name["groups"].default) == ("an integer", "`1`")
    assert {each.name: each.holds for each in fields_of(partition.LoadOp)} == {
        "state": "a symbol",
        "result": "[`!partition.tensor`](partition.md#partitiontensor)",
    }


def test_an_operation_without_an_assembly_format_has_fields_and_no_syntax():
    @irdl_op_definition
    class PlainOp(IRDLOperation):
        name = "test.plain"
        first = operand_def(TensorType)
        second = opt_operand_def()
        out = result_def()

    assert syntax(PlainOp) == ""
    assert [(each.name, each.holds) for each in fields_of(PlainOp)] == [
        ("first", "a tensor"),
        ("second", "a value of any type, or nothing"),
        ("out", "a value of any type"),
    ]


@irdl_op_definition
class InnerOp(IRDLOperation):
    """An operation that stands in another only."""

    name = "test.inner"
    traits = traits_def(HasParent(TestOp))


def test_marks_name_the_kind_and_the_traits_that_matter():
    assert marks(nn.AddOp) == ("structured", "pure", "commutative")
    assert marks(nn.SoftmaxOp) == ("composite", "pure")
    assert marks(InnerOp) == ("only in `test.op`",)


def test_operations_that_differ_in_meaning_alone_are_a_family():
    found = families([nn.AddOp, nn.ReluOp, nn.SubOp, nn.LessOp, nn.ScaleOp])
    assert found == [[nn.AddOp, nn.SubOp], [nn.ReluOp], [nn.LessOp], [nn.ScaleOp]]


def test_a_docstring_has_a_meaning_fields_and_an_example():
    found = parsed(
        "Cut it. Then sew.\n\nsize: of the cut,\nin parts. seam:\nhow wide.\n\n"
        "More.\nExample: %0 = a.cut\n  : i1\n",
        ["size", "seam"],
    )
    assert found.summary == "Cut it."
    assert found.text == "Cut it. Then sew.\n\nMore."
    assert found.fields == {"size": "of the cut, in parts", "seam": "how wide"}
    assert found.example == "%0 = a.cut\n    : i1"


def test_errors_that_python_raises_are_left_out_of_the_page():
    assert without_errors("A. Raises ValueError if b.\n\nC.\n\nRaises OSError.") == "A.\n\nC."


def test_an_example_of_several_lines_keeps_them():
    assert parsed("Two.\n\nExample:\n    a {\n      b\n    }").example == "a {\n  b\n}"


def test_prose_keeps_lists_code_and_stress_and_takes_formulas_as_they_are():
    assert plain("tensor<4xf32>, a*b, (a)*(b), *stress*, `a*b<c>`") == (
        r"tensor\<4xf32>, a\*b, (a)\*(b), *stress*, `a*b<c>`"
    )
    assert prose("One\ntwo:\n\n- a\n  b\n- c\n\n    x\n\n    y") == (
        "One two:\n\n- a b\n- c\n\n```\nx\n\ny\n```"
    )


def test_anchors_are_those_that_forges_give():
    headings = ("nn.add", "abele run", "!partition.tensor", "canonicalize.scale_by_one", "Grammar")
    assert [*map(slug, headings)] == [
        "nnadd",
        "abele-run",
        "partitiontensor",
        "canonicalizescale_by_one",
        "grammar",
    ]


def test_a_table_leaves_out_empty_columns():
    assert table(("a", "b"), [("1", ""), ("x|y", "")]) == "| a |\n| --- |\n| 1 |\n| x\\|y |"
    assert table(("a",), []) == ""


def test_the_example_of_a_target_is_one():
    target = Target.from_toml(EXAMPLE)
    assert (target.name, target.base, target.tiles) == ("half", "mk2", 736)
    assert target.memory.bytes_per_tile == 327_680
