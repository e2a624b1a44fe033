"""The archives of torch.export that are kept with the tests, and what PyTorch computes for them."""

from __future__ import annotations

import lzma
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ArrayAttr
from xdsl.dialects.func import FuncOp

from abele.backends.reference import run_reference
from abele.ir.context import AbeleContext
from abele.ir.upstream import ModuleOp
from abele.tools.importers.front_end import Reading
from abele.tools.importers.pt2.reader import read_pt2

Array = np.ndarray[Any, Any]

FOLDER = Path(__file__).parent / "fixtures"

FIXTURES = sorted(each.name.removesuffix(".pt2.xz") for each in FOLDER.glob("*.pt2.xz"))


@lru_cache
def archive_of(name: str) -> bytes:
    """The bytes of an archive."""
    return lzma.decompress((FOLDER / f"{name}.pt2.xz").read_bytes())


def expected(name: str) -> tuple[list[Array], list[Array]]:
    """The inputs of a model, and what PyTorch computes of them."""
    own = name.removesuffix(", core")
    with np.load(FOLDER / "values.npz") as stored:
        found = {key: stored[key] for key in stored.files if key.startswith(f"{own}/")}
    inputs = [found[key] for key in sorted(found) if "/in" in key]
    return inputs, [found[key] for key in sorted(found) if "/out" in key]


def imported(model: Any, **given: Any) -> ModuleOp:
    """The module of an archive; its operations verify."""
    module = read_pt2(model, Reading(AbeleContext(), "model.pt2", **given))
    module.verify()
    return module


def results(module: ModuleOp, inputs: list[Array]) -> list[Array]:
    """What a module computes, at nn."""
    given = dict(zip(names_of(module, "arg_names"), inputs, strict=True))
    return list(run_reference(module, given).outputs.values())


def names_of(module: ModuleOp, what: str) -> list[str]:
    """The names of the inputs of @main (arg_names), or of its outputs (result_names)."""
    main = next(op for op in module.ops if isinstance(op, FuncOp))
    attribute = main.attributes[what]
    assert isinstance(attribute, ArrayAttr)
    return [each.data for each in attribute.data]


def agree(found: list[Array], wanted: list[Array]) -> None:
    """Raise AssertionError unless the arrays are equal within abele's bound for networks."""
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        size = float(np.abs(b).max(initial=0))
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-5 * max(size, 1e-6))
