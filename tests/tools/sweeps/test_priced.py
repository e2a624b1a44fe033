from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from swept_product import PACKED_PRODUCT

from abele.backends.target import PRESETS, changed_target
from abele.tools.sweeps.points import compiled_for
from abele.tools.sweeps.sweep import sweep


def test_chips_that_differ_only_in_what_no_pass_reads_share_a_program():
    alone = {compiled_for(PRESETS[name], {}) for name in ("mk2", "bow")}
    assert len(alone) == 1
    fed = changed_target(PRESETS["mk2"], {"host.items_per_s": 5.0, "storage.gbytes": 1.0})
    assert compiled_for(fed, {}) in alone
    assert compiled_for(PRESETS["mk1"], {}) not in alone
    assert compiled_for(changed_target(PRESETS["mk2"], {"workers": 4}), {}) not in alone


def test_the_clock_makes_another_program_where_a_pass_or_a_price_of_chips_reads_it():
    slow, fast = (changed_target(PRESETS["mk2"], {"clock_hz": hz}) for hz in (1e9, 2e9))
    assert compiled_for(slow, {}) == compiled_for(fast, {})
    assert compiled_for(slow, {"remote": ["w"]}) != compiled_for(fast, {"remote": ["w"]})
    assert compiled_for(slow, {"io_tiles": "auto"}) != compiled_for(fast, {"io_tiles": "auto"})
    assert compiled_for(slow.with_chips(2), {}) != compiled_for(fast.with_chips(2), {})


def test_a_reason_names_the_target_of_its_row_and_not_the_one_that_shares_its_program(
    product: Path,
):
    frame = sweep(
        {
            "model": [{"file": str(product), "replicas": 2}],
            "target": [{"base": ["mk2", "bow"]}, {"base": "mk2", "clock_hz": 2e9}],
        },
        product.with_name("t"),
        "here",
    )
    assert list(frame["status"]) == ["refused"] * 3
    assert [reason.partition("; ")[2] for reason in frame["reason"]] == [
        f"target {name} has 1 chip" for name in ("mk2", "bow", "mk2,clock_hz=2000000000.0")
    ]


def test_a_sweep_trains_and_a_model_that_cannot_be_trained_says_so(product: Path):
    trained = product.with_name("trained.onnx")
    weights = numpy_helper.from_array(np.full((16, 8), 0.5, np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 8])],
        [weights],
    )
    onnx.save(helper.make_model(graph), trained)
    how = {"loss": "mean_square", "optimizer": ["sgd", "adam"]}
    frame = sweep(
        {
            "model": [{"file": [str(product), str(trained)], "training": how}],
            "target": [{"base": "tiny:4"}],
        },
        product.with_name("t"),
        "here",
    )
    assert list(frame["training_optimizer"]) == ["sgd", "adam"] * 2
    assert list(frame["status"]) == ["refused", "refused", "fits", "fits"]
    assert frame["vertices"][3] > frame["vertices"][2]


def test_products_of_packed_integers_count(product: Path):
    product.write_text(PACKED_PRODUCT)
    spec = {"model": [{"file": str(product)}], "target": [{"base": "tiny:4"}]}
    (macs,) = sweep(spec, product.with_name("t"), "here")["macs"]
    assert macs == 8 * 6
