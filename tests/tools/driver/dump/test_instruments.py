from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from some_models import convolutions
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from abele.backends.target import resolve_target
from abele.dialects import nn
from abele.dialects.levels import level_of
from abele.ir.pass_manager import PassManager
from abele.ir.provenance import LocatingWalker
from abele.ir.text import parse_module, print_module, read_module
from abele.ir.text_version import with_version
from abele.ir.verify import verify
from abele.tools import compile_model
from abele.tools.driver.context import new_context
from abele.tools.driver.dump.folder import MARK, check_dump
from abele.tools.driver.dump.instruments import dump_instruments
from abele.tools.extensions import load_extensions

TARGET = "tiny"


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dump")
    compile_model(convolutions(), "tiny:16", dump_ir=folder)
    return folder


def dumped(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.mlir"))


def test_every_file_parses_verifies_and_prints_back_equal(dump: Path):
    assert len(dumped(dump)) > 5
    for file in dumped(dump):
        module = read_module(file, new_context())
        verify(module, level_of(module))
        assert with_version(print_module(module)) == file.read_text(), file.name
        assert "loc(" in file.read_text()


def test_every_file_can_be_the_input_of_the_rest(dump: Path):
    last = dumped(dump)[-1].read_text()
    for file in dumped(dump):
        again = compile_model(file, "tiny:16").module_at("exchange")
        assert with_version(print_module(again)) == last, file.name


def test_only_passes_that_changed_something_leave_a_file(dump: Path):
    texts = [file.read_text() for file in dumped(dump)]
    assert all(one != other for one, other in pairwise(texts))


def test_the_page_is_one_file_that_asks_for_nothing(dump: Path):
    text = (dump / "index.html").read_text()
    assert MARK in text[:256]
    assert "{{" not in text.split("<script")[0]
    for outside in ("http:", "https:", "src=", "@import", "url("):
        assert outside not in text


def test_a_second_dump_replaces_the_first(dump: Path):
    check_dump(dump, "net.onnx")


@dataclass(frozen=True)
class Fail(ModulePass):
    name = "fail"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise ValueError("no way <down>")


def test_a_failing_pass_leaves_a_page(tmp_path: Path):
    dump = dump_instruments(tmp_path, resolve_target(TARGET), "net", load_extensions())
    with pytest.raises(ValueError, match="no way"):
        PassManager((Fail(),), (*dump.around, *dump.within)).run(new_context(), ModuleOp([]))
    assert MARK in (tmp_path / "index.html").read_text()


def test_a_page_that_cannot_be_written_hides_no_error(tmp_path: Path):
    (tmp_path / "index.html").mkdir()
    dump = dump_instruments(tmp_path, resolve_target(TARGET), "net", load_extensions())
    with pytest.raises(ValueError, match="no way") as caught:
        PassManager((Fail(),), (*dump.around, *dump.within)).run(new_context(), ModuleOp([]))
    assert any("index.html: not written" in note for note in caught.value.__notes__)


@dataclass(eq=False, repr=False)
class Swap(RewritePattern):
    """Make every second operation another, a different half each time."""

    turn: int

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: nn.ReluOp | nn.AbsOp, rewriter: PatternRewriter, /) -> None:
        if (len(str(op.location)) + self.turn) % 2:
            other = nn.AbsOp if isinstance(op, nn.ReluOp) else nn.ReluOp
            rewriter.replace(op, other(op.operands[0]))


@dataclass(frozen=True)
class SwapAll(ModulePass):
    name = "swap-all"
    turn: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        LocatingWalker(Swap(self.turn), apply_recursively=False).rewrite_module(op)


def chain(length: int) -> Iterator[str]:
    kind = "tensor<4x8xf32>"
    yield f"func.func @main(%v: {kind}) -> {kind} {{"
    for number in range(length):
        before = f"v{number - 1}" if number else "v"
        name = f"block{number // 10}/node{'x' * (number % 7)}{number}"
        yield f'%v{number} = nn.relu %{before} : ({kind}) -> {kind} loc("{name}")'
    yield f"func.return %v{length - 1} : {kind} }}"


def test_a_page_of_many_operations_and_twenty_passes_is_small(tmp_path: Path):
    context = new_context()
    module = parse_module("\n".join(chain(200)), context)
    dump = dump_instruments(tmp_path, resolve_target(TARGET), "chain", load_extensions())
    passes = tuple(SwapAll(turn) for turn in range(20))
    PassManager(passes, (*dump.around, *dump.within)).run(context, module)
    assert len(dumped(tmp_path)) == 21
    assert (tmp_path / "index.html").stat().st_size < 250_000
