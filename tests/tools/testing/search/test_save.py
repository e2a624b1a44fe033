import pytest

from abele.ir.pass_manager import load_pass
from abele.passes.names import pipeline_passes
from abele.tools.testing.search.replay import recorded_passes
from abele.tools.testing.search.save import replay_record


@pytest.mark.parametrize("name", ["cse", "xdsl-cse", "canonicalize", "xdsl-canonicalize"])
def test_a_pass_that_a_pipeline_may_name_is_saved_by_its_name(name: str):
    tested = load_pass(name, pipeline_passes())()
    record = replay_record([tested], [], "value")
    assert record["passes"] == [{"spec": name}]
    assert recorded_passes(record) == (tested,)
