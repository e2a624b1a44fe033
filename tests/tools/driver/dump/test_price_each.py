from dataclasses import dataclass

from some_models import convolutions
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from abele.backends.target import resolve_target
from abele.dialects.levels import EXCHANGE, NN
from abele.ir.pass_manager import PassManager, parse_pipeline
from abele.passes.pipelines import PASSES, pipeline
from abele.tools import compile_model
from abele.tools.driver.context import new_context
from abele.tools.driver.dump.price_each import NEEDED, TOO_LONG, Figures, PriceEach
from abele.tools.importers import import_onnx

TARGET = "tiny:16"
WAY = parse_pipeline(pipeline(NN, EXCHANGE, TARGET), PASSES)
NAMES = [each.name for each in WAY]


def priced(passes: tuple[ModulePass, ...], seconds: float = 100.0) -> list[Figures | str]:
    context = new_context()
    module = import_onnx(convolutions(), context)
    prices = PriceEach(resolve_target(TARGET))
    PassManager(passes, (prices,)).run(context, module)
    return prices.figures([True] * (len(passes) + 1), seconds)


def built(names: list[str]) -> Figures:
    spec = ",".join(f'plan-splits{{target="{TARGET}"}}' if n == "plan-splits" else n for n in names)
    profile = compile_model(convolutions(), TARGET, passes=spec).profile
    return Figures(profile["supersteps"], profile["max_tile_bytes"], profile["cycles"])


def test_the_needed_passes_alone_build_a_program():
    assert [name for name in NAMES if name in NEEDED] == list(NEEDED)
    assert isinstance(built(list(NEEDED)), Figures)


def test_the_last_figures_are_the_program_s():
    assert priced(WAY)[-1] == built(NAMES)


def test_the_first_figures_are_those_of_the_needed_passes_alone():
    assert priced(WAY)[0] == built(list(NEEDED))


def test_the_figures_after_a_pass_are_of_the_passes_so_far_and_the_needed_ones():
    figures = priced(WAY)
    for name in ("fold-constants", "eliminate-dead", "fuse-chains"):
        done = NAMES[: NAMES.index(name) + 1]
        rest = [each for each in NEEDED if each not in done]
        assert figures[len(done)] == built([*done, *rest]), name


def test_a_needed_pass_does_not_change_the_figures():
    figures = priced(WAY)
    for name in NEEDED:
        at = NAMES.index(name)
        assert figures[at] == figures[at + 1]


def test_the_earliest_figures_are_left_out_if_time_runs_short(monkeypatch):
    clock = iter(range(0, 10_000, 10))
    monkeypatch.setattr("abele.tools.driver.dump.price_each.process_time", lambda: next(clock))
    figures = priced(WAY, seconds=30.0)
    assert figures[0] == TOO_LONG
    assert isinstance(figures[-1], Figures)
    absent = [isinstance(each, str) for each in figures]
    assert absent == sorted(absent, reverse=True)


@dataclass(frozen=True)
class Spoil(ModulePass):
    """Take the entry away."""

    name = "spoil"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in list(op.body.block.ops):
            each.detach()
            each.erase(safe_erase=False)


def test_a_program_that_cannot_be_built_has_a_reason_instead_of_figures():
    figures = priced((Spoil(),))
    assert isinstance(figures[0], Figures)
    assert isinstance(figures[1], str)
    assert "main" in figures[1]
