"""The layers of nodes, by the names that exporters give them."""

import pytest

from abele.tools.driver.decoding.token_costs import BEFORE, BEHIND, WHOLE, layers_of


@pytest.mark.parametrize(
    ("node", "layer"),
    [
        ("/transformer/h.0/attn/MatMul", "h.0"),
        ("model.layers.11.mlp.up_proj", "layers.11"),
        ("layer3.attend.dots", "layer3"),
        ("/model/layers.2/mlp/Mul/in1", "layers.2"),
        ("blocks.4.ln1", "blocks.4"),
        ("encoder.layer.5.output", "layer.5"),
    ],
)
def test_the_name_of_a_node_says_its_layer(node: str, layer: str):
    assert layers_of(["embedding", node, "head"]) == [BEFORE, layer, BEHIND]


def test_nodes_without_a_layer_are_in_that_before_them_or_in_none():
    nodes = ["Gather_1", "h.0.ln", "present.0.key", "sampling", "h.1.ln", "Add_7", "logits"]
    nodes += ["sampling/partials", "logits/cast", "loop over tokens/carried"]
    layers = [BEFORE, "h.0", "h.0", "sampling", "h.1", BEHIND, BEHIND]
    layers += ["sampling", BEHIND, "loop over tokens"]
    assert layers_of(nodes) == layers
    assert layers_of(["Add_7", "MatMul_8"]) == [WHOLE, WHOLE]
