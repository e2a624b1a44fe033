from dataclasses import dataclass

import pytest
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination

from abele.ir.errors import InputError
from abele.ir.pass_manager import check_options, load_pass, parse_pipeline, pipeline_spec
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.passes.canonicalize import Canonicalize
from abele.passes.decompose import Decompose
from abele.passes.names import XDSL_PASSES, pipeline_passes, xdsl_opt_passes
from abele.passes.pipelines import PASSES

OPT = pipeline_passes(PASSES)


@dataclass(frozen=True)
class Cse(ModulePass):
    """A user's pass of a name that xDSL has."""

    name = "cse"

    def apply(self, ctx: Context, op: ModuleOp) -> None: ...


@pytest.mark.parametrize(
    ("name", "whose"),
    [
        ("canonicalize", Canonicalize),
        ("abele-canonicalize", Canonicalize),
        ("xdsl-canonicalize", CanonicalizePass),
        ("decompose", Decompose),
        ("abele-decompose", Decompose),
        ("cse", CommonSubexpressionElimination),
        ("xdsl-cse", CommonSubexpressionElimination),
    ],
)
def test_a_pipeline_resolves_names_of_passes(name: str, whose: type[ModulePass]):
    assert issubclass(load_pass(name, OPT), whose)


def test_a_users_pass_takes_the_bare_name():
    names = pipeline_passes({**PASSES, "cse": Cse})
    assert load_pass("cse", names) is Cse
    assert issubclass(load_pass("xdsl-cse", names), CommonSubexpressionElimination)


@pytest.mark.parametrize("name", ["decompose", "abele-recompute", "xdsl-canonicalize", "xdsl-cse"])
def test_a_pipeline_is_printed_so_that_it_means_the_same_passes(name: str):
    (given,) = parse_pipeline(name, OPT)
    (again,) = parse_pipeline(pipeline_spec([given]), OPT)
    assert type(again).__mro__[-4:] == type(given).__mro__[-4:]
    assert again.name == given.name == name.removeprefix("abele-")


def test_every_option_of_an_xdsl_pass_can_be_set():
    for name in XDSL_PASSES:
        check_options(load_pass(name, XDSL_PASSES))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("cannonicalize", "no pass 'cannonicalize'; did you mean canonicalize"),
        ("xdsl-canonicalise", "did you mean xdsl-canonicalize"),
        (
            "abele-canonicalise",
            r"did you mean abele-canonicalize\? For a pass of yours, load its file with --load$",
        ),
        ("abele-cse", "no pass 'abele-cse'"),
    ],
)
def test_an_unknown_name_suggests_names_of_the_same_kind(name: str, says: str):
    with pytest.raises(InputError, match=says):
        load_pass(name, OPT)


def test_no_pass_takes_a_name_that_xdsl_opt_has():
    names = xdsl_opt_passes()
    assert not set(names) & set(XDSL_PASSES)
    assert {f"abele-{name}" for name in PASSES} <= set(names)
    assert set(PASSES) - set(names) == set(PASSES) & set(XDSL_PASSES) == {"canonicalize"}


def test_a_full_name_is_the_name_of_its_class():
    for name, entry in xdsl_opt_passes().items():
        assert load_pass(name, {name: entry}).name == name
    for name in ("xdsl-cse", "xdsl-canonicalize", "xdsl-apply-pdl"):
        assert load_pass(name, OPT).name == name
