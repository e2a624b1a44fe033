"""A crash in a user's pass shows the user's own lines first."""

import traceback
from dataclasses import dataclass
from pathlib import Path

import pytest
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from abele.dialects import nn
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.tools.driver.frames import place_of, trimmed
from abele.tools.testing import PassFailed, check_pass
from abele.tools.testing.search import shrink


class Crash(RewritePattern):
    """Looks up what is not there."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: nn.SubOp, rewriter: PatternRewriter) -> None:
        assert {}["missing"]


@dataclass(frozen=True)
class Crashes(ModulePass):
    """Crashes in a pattern, inside xDSL's walker."""

    name = "crashes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        PatternRewriteWalker(Crash()).rewrite_module(op)


@dataclass(frozen=True)
class LeavesNone(ModulePass):
    """Leaves a property that is not an attribute."""

    name = "leaves-none"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if isinstance(each, nn.SubOp):
                each.properties["mode"] = None  # pyright: ignore[reportArgumentType]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shrink, "SHRINKING", 0.2)


def test_the_cause_has_the_passs_own_frames_alone(tmp_path: Path):
    with pytest.raises(PassFailed) as caught:
        check_pass(Crashes(), level="nn", examples=100, seed=1, folder=tmp_path)
    cause = caught.value.__cause__
    assert isinstance(cause, KeyError)
    names = [each.name for each in traceback.extract_tb(cause.__traceback__)]
    assert names == ["apply", "match_and_rewrite"]
    assert "raised KeyError: 'missing' (test_frames.py:" in str(caught.value)
    assert "in match_and_rewrite)" in str(caught.value)


def test_a_property_that_is_none_is_named(tmp_path: Path):
    with pytest.raises(PassFailed) as caught:
        check_pass(LeavesNone(), level="nn", examples=100, seed=1, folder=tmp_path)
    said = "pass 'leaves-none' left property 'mode' of nn.sub as None; need an attribute"
    assert said in str(caught.value)


def test_an_error_without_users_frames_is_unchanged():
    error = KeyError("x")
    assert trimmed(error) is error
    assert place_of(error) == ""
