"""Damaged programs of StableHLO and of MLIR's own dialects, above nn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from ....ir.support.errors import InputError
from ....ir.text import parse_module, print_module
from ....ir.upstream import ModuleOp
from ....passes.convert_nn_to_linalg import ConvertNnToLinalg
from ...driver.context import new_context
from ...importers.stablehlo.reader import parse_stablehlo
from .case import Damaged
from .edits import edit_module
from .mlir_traps import mlir_trap
from .programs import program_files
from .text import damage_text

TESTS = Path(__file__).resolve().parents[3] / "tests"

STABLEHLO_FILES = TESTS / "tools" / "importers" / "stablehlo" / "programs"
"""Programs that JAX wrote."""

LINALG_FILE = TESTS / "filecheck" / "convert-linalg-to-nn.mlir"

POOL = 40
"""The number of generated programs that are tried for linalg."""

MOST_TEXT = 12_000
"""The most characters of a whole program. Longer ones take longer and find no more."""


@lru_cache(maxsize=1)
def stablehlo_texts() -> list[str]:
    """Whole programs of StableHLO."""
    texts = [path.read_text() for path in sorted(STABLEHLO_FILES.glob("*.mlir"))]
    assert texts, f"{STABLEHLO_FILES}: no programs"
    return [each for each in texts if len(each) <= MOST_TEXT]


LOOPS = """func.func @main(%x: tensor<4x6xf32>, %n: tensor<i32>)
    -> (tensor<4x6xf32>, tensor<4xf32>) {
  %l = arith.constant 0 : index
  %u = arith.constant 3 : index
  %s = arith.constant 1 : index
  %k = tensor.extract %n[] : tensor<i32>
  %zero = arith.constant 0 : i32
  %positive = arith.cmpi sgt, %k, %zero : i32
  %e = tensor.empty() : tensor<4x6xf32>
  %grown = scf.for %i = %l to %u step %s iter_args(%a = %x) -> (tensor<4x6xf32>) {
    %b = linalg.add ins(%a, %x : tensor<4x6xf32>, tensor<4x6xf32>)
                    outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
    scf.yield %b : tensor<4x6xf32>
  }
  %chosen = scf.if %positive -> (tensor<4x6xf32>) {
    %c = func.call @twice(%grown) : (tensor<4x6xf32>) -> tensor<4x6xf32>
    scf.yield %c : tensor<4x6xf32>
  } else {
    scf.yield %x : tensor<4x6xf32>
  }
  %part = tensor.extract_slice %chosen[1, 0] [2, 6] [1, 1] : tensor<4x6xf32> to tensor<2x6xf32>
  %put = tensor.insert_slice %part into %x[2, 0] [2, 6] [1, 1]
      : tensor<2x6xf32> into tensor<4x6xf32>
  %flat = tensor.collapse_shape %put [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
  %back = tensor.expand_shape %flat [[0, 1]] output_shape [4, 6]
      : tensor<24xf32> into tensor<4x6xf32>
  %f0 = arith.constant 0.0 : f32
  %row = tensor.empty() : tensor<4xf32>
  %begin = linalg.fill ins(%f0 : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %total = linalg.reduce ins(%back : tensor<4x6xf32>) outs(%begin : tensor<4xf32>) dimensions = [1]
  (%p: f32, %q: f32) {
    %r = arith.addf %p, %q : f32
    linalg.yield %r : f32
  }
  func.return %back, %total : tensor<4x6xf32>, tensor<4xf32>
}
func.func private @twice(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<4x6xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%p: f32, %o: f32):
    %two = arith.constant 2.0 : f32
    %s = arith.mulf %p, %two : f32
    %t = math.tanh %s : f32
    linalg.yield %t : f32
  } -> tensor<4x6xf32>
  func.return %r : tensor<4x6xf32>
}
"""
"""A program with loops, choices, slices and calls."""


@lru_cache(maxsize=1)
def linalg_texts() -> list[str]:
    """Whole programs of linalg, tensor, arith, math and scf."""
    texts = [LINALG_FILE.read_text(), LOOPS, LOOPS]
    for number in range(POOL):
        files = program_files("nn", number)
        module = files.program.module.clone()
        try:
            ConvertNnToLinalg().apply(new_context(), module)
        except InputError:
            continue
        text = print_module(module, locations=False)
        if not files.blobs and len(text) <= MOST_TEXT:
            texts.append(text)
    return texts


@dataclass(frozen=True)
class Source:
    """A dialect above nn.

    Attributes:
        texts: returns whole programs.
        parse: returns the module of a text.
    """

    texts: Callable[[], list[str]]
    parse: Callable[[str], ModuleOp]


def _parse_linalg(text: str) -> ModuleOp:
    return parse_module(text, new_context(), "model.mlir")


SOURCES = {
    "stablehlo": Source(stablehlo_texts, lambda text: parse_stablehlo(text, "model.mlir")),
    "linalg": Source(linalg_texts, _parse_linalg),
}
"""The dialects by name."""


def _whole(dialect: str, random: np.random.Generator) -> str:
    texts = SOURCES[dialect].texts()
    return texts[int(random.integers(len(texts)))]


def source_text(random: np.random.Generator, dialect: str) -> Damaged:
    """A program of a dialect whose text is damaged."""
    return damage_text(_whole(dialect, random), random)


def source_edits(random: np.random.Generator, dialect: str) -> Damaged:
    """A program of a dialect with edited operations."""
    text = _whole(dialect, random)
    whole = _parsed(dialect, text)
    for _ in range(20):
        module = whole.clone()
        # Attributes refuse some numbers when they are made, and some modules cannot be printed.
        try:
            done = edit_module(module, random)
            edited = print_module(module, locations=False)
        except Exception:
            continue
        return Damaged(edited.encode("utf-8", "surrogatepass"), done)
    return Damaged(text.encode(), "unchanged")


@lru_cache(maxsize=256)
def _parsed(dialect: str, text: str) -> ModuleOp:
    return SOURCES[dialect].parse(text)


def source_trap(random: np.random.Generator, dialect: str) -> Damaged:
    """A program of a dialect that does harm."""
    return mlir_trap(random, dialect)
