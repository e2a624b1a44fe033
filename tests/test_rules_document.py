"""Loads the rules of the page about the rule language, and checks what the page claims."""

import re
from collections.abc import Generator
from pathlib import Path

import pytest
from documents import Block, Reader, blocks_of, compare, is_file, reading
from xdsl.dialects.builtin import FunctionType, TensorType, f16, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block as Body
from xdsl.ir import Dialect, Region
from xdsl.irdl import IRDLOperation, irdl_op_definition, var_operand_def, var_result_def

from abele.ir.errors import InputError
from abele.ir.rules import Vocabulary, parse_rule_set
from abele.ir.rules.library import CLASSES, FUNCTIONS
from abele.ir.rules.match import match_rule
from abele.ir.text import print_module
from abele.ir.upstream import ModuleOp
from abele.tools.extensions import Extensions, load_extensions

PAGE = Path(__file__).parents[1] / "docs" / "rules.md"
VALUES = {
    "a": TensorType(f32, [4, 6]),
    "b": TensorType(f32, [4, 6]),
    "v": TensorType(f32, [6]),
    "h": TensorType(f16, [4, 6]),
}
"""What the page's programs take."""


@irdl_op_definition
class ProgramOp(IRDLOperation):
    """In its place stands a program of the page."""

    name = "page.program"
    values = var_operand_def()
    outputs = var_result_def()


PAGE_DIALECT = Dialect("page", [ProgramOp], [])


def program(text: str, extensions: Extensions) -> ModuleOp:
    """The program that a right side describes, as the function of a module."""
    context = extensions.context()
    context.load_dialect(PAGE_DIALECT)
    names = (name if re.search(rf"\b{name}\b", text) else "_" for name in VALUES)
    rule = f"rule page: page.program({', '.join(names)}) => {text}"
    body = Body(arg_types=VALUES.values())
    root = ProgramOp.create(operands=body.args)
    body.add_op(root)
    vocabulary = Vocabulary(context)
    (bound_rule,) = parse_rule_set(rule, vocabulary, "program").bound
    match = match_rule(bound_rule, root, vocabulary)
    assert match is not None
    made = bound_rule.make(match)
    assert made is not None
    root.detach()
    body.add_ops([*made.ops, ReturnOp(*made.values)])
    types = FunctionType.from_lists(tuple(VALUES.values()), [each.type for each in made.values])
    return ModuleOp([FuncOp("main", types, Region(body))])


def hold(claim: str, extensions: Extensions) -> None:
    """Hold a program to what is claimed to become of it."""
    before, arrow, after = claim.partition("  ->  ")
    if not arrow:
        before = after = claim.removesuffix("  stays")
        assert before != claim, f"{claim}: need  ->  or  stays"
    module = program(before, extensions)
    extensions.passes["my"]().apply(extensions.context(), module)
    module.verify()
    wanted = print_module(program(after, extensions), locations=False)
    found = print_module(module, locations=False)
    assert found == wanted, claim


@pytest.fixture
def reader(tmp_path: Path) -> Generator[Reader]:
    """What the page's Python registers is taken back."""
    tables = (FUNCTIONS, CLASSES)
    before = [dict(each) for each in tables]
    try:
        with reading(tmp_path) as reader:
            yield reader
    finally:
        for table, old in zip(tables, before, strict=True):
            table.clear()
            table.update(old)


def test_every_rule_does_as_its_text_claims(reader: Reader):
    files: list[str] = []
    refused = ""
    extensions: Extensions | None = None
    for block in blocks_of(PAGE):
        if is_file(block) or block.kind == "console":
            reader.read(block)
            files += title_of(block, ".py")
        elif block.kind == "rw":
            assert not refused, f"line {block.line}: nothing is said of the rules before"
            Path("my.rw").write_text(block.text)
            extensions, refused = loaded([*files, "my.rw"])
        elif refused:
            compare(block.text, refused, "what is refused", f"{block.line}")
            refused = ""
        else:
            assert extensions is not None
            for claim in block.text.splitlines():
                hold(claim, extensions)
    assert not refused
    assert files


def title_of(block: Block, suffix: str) -> list[str]:
    """The name of a block's file, if it is of a kind."""
    name = block.text.partition("\n")[0].split()[-1]
    return [name] if name.endswith(suffix) else []


def loaded(files: list[str]) -> tuple[Extensions | None, str]:
    """What files add; else the first lines of what is said of them."""
    try:
        found = load_extensions(files)
    except InputError as error:
        heads = str(error).splitlines()[::3]
        return None, "".join(f"error: {head}\n" for head in heads)
    assert not found.warnings, found.warnings
    return found, ""
