import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

from abele.tools.importers.residual_network import resnet34


def test_resnet34_has_34_layers_and_as_many_weights_as_in_the_paper():
    made = resnet34()
    onnx.checker.check_model(made, full_check=True)
    shapes = {each.name: numpy_helper.to_array(each).shape for each in made.graph.initializer}
    wide = [name for name, shape in shapes.items() if name.endswith(".weight")]
    assert len([name for name in wide if "s.weight" not in name]) == 34
    trained = [s for n, s in shapes.items() if not n.endswith((".mean", ".variance"))]
    assert sum(int(np.prod(shape)) for shape in trained) == 21_797_672


def test_resnet34_computes_finite_scores_for_each_image():
    session = onnxruntime.InferenceSession(resnet34(2, 32, 5).SerializeToString())
    images = np.random.default_rng(0).standard_normal((2, 3, 32, 32), np.float32)
    (scores,) = session.run(None, {"x": images})
    assert scores.shape == (2, 5)
    assert np.isfinite(scores).all()
    assert not np.allclose(scores[0], scores[1])
