"""Values with tensor types for building operations, and modules from text."""

from math import prod

import numpy as np
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.dialects.test import TestOp
from xdsl.ir import SSAValue

from abele.dialects.abele import Abele
from abele.dialects.control import Control
from abele.dialects.nn import NN
from abele.dialects.nn.state import tensor_type_of
from abele.ir.context import AbeleContext
from abele.ir.text import parse_module
from abele.ir.verify import verify


def values_like(*arrays: np.ndarray) -> list[SSAValue]:
    return list(TestOp(result_types=[tensor_type_of(a) for a in arrays]).results)


def context() -> AbeleContext:
    context = AbeleContext()
    for dialect in (Builtin, Func, Abele, Control, NN):
        context.load_dialect(dialect)
    return context


def module_of(text: str, ctx: AbeleContext, **blobs: np.ndarray) -> ModuleOp:
    """The verified module of a text, in which {name} stands for the blob with that name."""
    for name, array in blobs.items():
        digest = ctx.blobs.add(np.array(array)).digest
        text = text.replace("{" + name + "}", f'<"{digest}">')
    module = parse_module(text, ctx)
    verify(module)
    return module


def small_integers(seed: int, shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    """Integers so small that every float type holds their products and sums exactly."""
    rng = np.random.default_rng(seed)
    low = 0 if dtype.startswith("u") else -3
    return rng.integers(low, 4, shape).astype(dtype)


def counting(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    return np.arange(prod(shape)).reshape(shape).astype(dtype)
