"""All pages of the reference."""

from __future__ import annotations

from ...dialects.levels import DIALECTS, SOURCE_DIALECTS
from .caffe_layers import caffe_layers_page
from .codelets import codelets_page
from .commands import commands_page
from .definitions import vocabulary
from .dialects import dialect_pages, meaning
from .levels import levels_page
from .limits import limits_page
from .markdown import code, link, page, plain, table
from .mxnet_operators import mxnet_operators_page
from .onnx_operators import onnx_operators_page
from .onnx_table import onnx_table_page
from .passes import passes_page
from .pytorch_operators import pytorch_operators_page
from .rules import rules_by_file, rules_page
from .targets import targets_page

PAGES = {
    "levels.md": "the levels: which operations are legal on each one, and what must hold of them",
    "passes.md": "passes, with their options and the default pipeline",
    "rules.md": "the rules that passes apply, the functions they may call, and the grammar",
    "codelets.md": "codelets, with their errors and prices",
    "targets.md": "every fact of every preset, with its source",
    "commands.md": "the command line",
    "limits.md": "what abele refuses because it would take forever, and how to change that",
    "onnx.md": "the ONNX operators that abele imports",
    "pytorch.md": "the operators of PyTorch that abele imports",
    "caffe.md": "the layers of Caffe that abele imports",
    "mxnet.md": "the operators of MXNet that abele imports",
}
"""The pages besides those of dialects, with their contents."""

OPERATORS = "../operators.md"
"""The page beside the folder of the reference: every operator of ONNX."""


def pages() -> dict[str, str]:
    """The text of every page, by path."""
    rules = rules_by_file()
    return {
        "index.md": _index(),
        **dialect_pages(rules),
        "levels.md": levels_page(),
        "passes.md": passes_page(rules),
        "rules.md": rules_page(rules),
        "codelets.md": codelets_page(),
        "targets.md": targets_page(),
        "commands.md": commands_page(),
        "limits.md": limits_page(),
        "onnx.md": onnx_operators_page(),
        "pytorch.md": pytorch_operators_page(),
        "caffe.md": caffe_layers_page(),
        "mxnet.md": mxnet_operators_page(),
        OPERATORS: onnx_table_page(),
    }


def _index() -> str:
    dialects = (
        (
            link(code(name), f"dialects/{name}.md"),
            plain(" ".join(meaning(name).partition("\n\n")[0].split())),
        )
        for name in (*DIALECTS, *SOURCE_DIALECTS)
    )
    return page(
        "Reference",
        "These pages are made from abele's definitions. "
        f"{link('The design', '../design.md')} gives the reasons, and an order to read in.",
        table(("dialect", "meaning"), dialects),
        "\n".join(
            f"- {link(path.removesuffix('.md'), path)}: {says}" for path, says in PAGES.items()
        ),
        "## Words",
        "These words describe operations:",
        table(("word", "meaning"), vocabulary().items()),
    )
