"""Runs the pages about bringing models from frameworks.

Python blocks run where the framework is installed. Elsewhere, the files in `porting` stand for what
they write, only commands run, and the test then counts as skipped.

`text.onnx` is what skl2onnx writes for `make_pipeline(TfidfVectorizer(), LogisticRegression())`.
"""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from documents import blocks_of, reading

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "porting"
WRITTEN = Path(__file__).parent / "porting"
NEEDED = {
    "scikit-learn": ("sklearn", "skl2onnx"),
    "keras": ("torch", "keras", "onnxscript"),
    "keras-jax": ("jax", "keras"),
    "tensorflow": ("tensorflow", "tf2onnx"),
    "jax": ("jax", "optax", "flax", "equinox", "jax2onnx"),
    "caffe": (),
    "mxnet": (),
}
"""The packages that the Python blocks of each page import."""

RANDOM = np.random.default_rng(0)
IMAGES = {
    "image": RANDOM.random((16, 8, 8, 1)).astype(np.float32),
    "target": np.arange(16, dtype=np.int32) % 10,
}
ROWS = {
    "x": RANDOM.random((16, 6)).astype(np.float32),
    "target": RANDOM.random((16, 3)).astype(np.float32),
}
PICTURES = {
    "data": RANDOM.random((16, 3, 16, 16)).astype(np.float32),
    "label": np.arange(16, dtype=np.int32) % 5,
}
STRAIN = {
    "data": RANDOM.standard_normal((32, 1, 64)).astype(np.float32),
    "softmax_label": np.arange(32, dtype=np.int32) % 2,
}
DATA = {
    "scikit-learn": {"iris.npz": {"X": np.full((5, 4), 2, np.float32)}},
    "keras": {"train.npz": IMAGES},
    "keras-jax": {},
    "tensorflow": {},
    "jax": {"train.npz": ROWS},
    "caffe": {"images.npz": PICTURES},
    "mxnet": {"strain.npz": STRAIN},
}
"""The arrays that Python blocks write."""


def missing(page: str) -> list[str]:
    """The packages of a page that are not installed."""
    return [each for each in NEEDED[page] if find_spec(each) is None]


def test_every_page_is_read():
    assert {each.stem for each in PAGES.glob("*.md")} == NEEDED.keys() == DATA.keys()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", NEEDED)
def test_the_page_runs_as_it_stands(page: str, tmp_path: Path):
    for path in (WRITTEN / page).glob("*"):
        shutil.copy(path, tmp_path)
    for name, arrays in DATA[page].items():
        np.savez(tmp_path / name, **arrays)
    missed = missing(page)
    with reading(tmp_path) as reader:
        for block in blocks_of(PAGES / f"{page}.md"):
            is_shell = block.kind == "text"
            if not is_shell and (not missed or block.kind != "python"):
                reader.read(block)
    if missed:
        pytest.skip(f"only commands ran: {', '.join(missed)} not installed")
