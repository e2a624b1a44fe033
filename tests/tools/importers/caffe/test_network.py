"""Rules choose the layers of a state: by phase, level and stage."""

import pytest

from abele.ir.support.errors import InputError
from abele.tools.importers.caffe.fields import Fields
from abele.tools.importers.caffe.kinds import NET
from abele.tools.importers.caffe.network import Network, State, network_of
from abele.tools.importers.caffe.text_format import read_text


def network(rule: str) -> Network:
    text = f'layer {{ name: "a" type: "ReLU" {rule} }}'
    return network_of(Fields(read_text(text.encode(), "t"), NET, "t"))


IN_TRAINING = State("TRAIN", 2, frozenset({"deep", "wide"}))


@pytest.mark.parametrize(
    ("rule", "included"),
    [
        ("", True),
        ("include { phase: TRAIN }", True),
        ("include { phase: TEST }", False),
        ("exclude { phase: TEST }", True),
        ("exclude { phase: 0 }", False),
        ("include { min_level: 2 max_level: 2 }", True),
        ("include { min_level: 3 }", False),
        ("include { max_level: 1 }", False),
        ('include { stage: "deep" stage: "wide" }', True),
        ('include { stage: "deep" stage: "flat" }', False),
        ('include { not_stage: "flat" }', True),
        ('include { not_stage: "wide" }', False),
        ('include { phase: TEST } include { stage: "deep" }', True),
        ('exclude { phase: TEST } exclude { stage: "deep" }', False),
    ],
)
def test_a_layer_is_there_if_a_rule_says_so(rule: str, included: bool):
    assert bool(network(rule).included(IN_TRAINING)) == included


def test_a_file_may_say_its_state():
    text = 'state { phase: TRAIN level: 3 stage: "deep" } layer { name: "a" type: "ReLU" }'
    found = network_of(Fields(read_text(text.encode(), "t"), NET, "t"))
    assert State("TEST").with_fields(found.state) == State("TRAIN", 3, frozenset({"deep"}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("include { phase: TEST } exclude { phase: TEST }", "exclude: next to include"),
        ("param { lr_mult: -1 }", "lr_mult -1, decay_mult 1; need 0 or more"),
        ("include { phase: BOTH }", "phase is 'BOTH'; need one of TRAIN, TEST"),
    ],
)
def test_rules_that_cannot_be_are_refused(text: str, message: str):
    with pytest.raises(InputError, match=message):
        network(text).included(IN_TRAINING)


def test_inputs_of_a_network_need_a_shape_each():
    for text in ('input: "x"', 'input: "x" input_dim: 1 input_dim: 2', "input_shape { dim: 1 }"):
        with pytest.raises(InputError, match="t: line 1: input"):
            network_of(Fields(read_text(text.encode(), "t"), NET, "t"))
