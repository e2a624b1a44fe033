"""What abele computes for exports that are made now agrees with PyTorch. Needs PyTorch."""

import io
import warnings
from typing import Any

import numpy as np
import pytest

from abele.ir.support.errors import InputError
from abele.tools import from_torch

from .fixture_models import agree, imported, names_of, results

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.utils._pytree import tree_flatten

    from .torch_architectures import ARCHITECTURES
    from .torch_models import MODELS, made
    from .torch_operators import OPERATORS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
]

SEEN = {"ResNet", "ConvNeXt", "ViT", "BERT", "GPT-2", "Llama"}
"""The architectures that are among the models."""

PADDED = ("nonzero", "masked_select")
"""Operators whose results have a size that depends on values, so that padding follows."""


def saved(program: Any) -> bytes:
    stream = io.BytesIO()
    torch.export.save(program, stream)
    return stream.getvalue()


def arrays(values: object) -> list[np.ndarray]:
    tensors = tree_flatten(values)[0]
    return [each.detach().numpy() for each in tensors]


@pytest.mark.parametrize("core", [False, True], ids=["plain", "core"])
@pytest.mark.parametrize("name", MODELS)
def test_a_model_agrees(name: str, core: bool):
    module, inputs = made(name)
    program = torch.export.export(module, inputs)
    program = program.run_decompositions() if core else program
    found = results(imported(saved(program)), arrays(inputs))
    agree(found, arrays(module(*inputs)))


@pytest.mark.parametrize("core", [False, True], ids=["plain", "core"])
@pytest.mark.parametrize("name", sorted(ARCHITECTURES.keys() - SEEN))
def test_an_architecture_agrees(name: str, core: bool):
    torch.manual_seed(0)
    make, inputs = ARCHITECTURES[name]
    module, given = make().eval(), inputs()
    program = torch.export.export(module, given)
    program = program.run_decompositions() if core else program
    agree(results(imported(saved(program)), arrays(given)), arrays(module(*given)))


class Applied(torch.nn.Module):
    """Several functions as one module: an export takes longer than a function."""

    def __init__(self, functions: Any):
        super().__init__()
        self.functions = functions

    def forward(self, given: Any) -> Any:
        return [f(*each) for f, each in zip(self.functions, given, strict=True)]


TOGETHER = 20
"""The number of operators in a module."""


@pytest.mark.parametrize("core", [False, True], ids=["plain", "core"])
@pytest.mark.parametrize("first", range(0, len(OPERATORS), TOGETHER))
def test_operators_agree(first: int, core: bool):
    cases = dict([*OPERATORS.items()][first : first + TOGETHER])
    functions, inputs = ([each[i] for each in cases.values()] for i in (0, 1))
    program = torch.export.export(Applied(functions), (inputs,))
    program = program.run_decompositions() if core else program
    module = imported(saved(program))
    given = {
        f"given_{i}_{j}": each.numpy()
        for i, operands in enumerate(inputs)
        for j, each in enumerate(operands)
    }
    found = iter(results(module, [given[each] for each in names_of(module, "arg_names")]))
    for name, (function, operands) in cases.items():
        for wanted in arrays(function(*operands)):
            result = next(found)
            result = result[: len(wanted)] if name in PADDED else result
            assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype), name
            wide = [each.astype(np.float64) for each in (result, wanted)]
            np.testing.assert_allclose(*wide, 2e-5, 2e-5, equal_nan=True, err_msg=name)


def test_a_module_compiles_in_one_call():
    module, inputs = made("mlp")
    exe = from_torch(module, *inputs, target="tiny:8", cache=False)
    found = exe.run({exe.inputs[0].name: inputs[0].numpy()})
    agree([np.asarray(each) for each in found.values()], arrays(module(*inputs)))


def test_what_torch_cannot_export_is_said_with_its_reason():
    class Branches(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x if x.sum() > 0 else -x

    message = r"^torch.export cannot export Branches: .*data-dependent"
    with pytest.raises(InputError, match=f"(?s){message}"):
        from_torch(Branches(), torch.randn(3))
