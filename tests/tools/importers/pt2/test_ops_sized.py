"""Programs for all sizes up to a bound, and sizes that depend on values, agree with fixed ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from abele.ir.support.errors import InputError
from abele.tools import compile_model
from abele.tools.importers.pt2.signatures import open_shapes

from .fixture_models import agree, archive_of, imported, names_of, results
from .written import node_tree, written

BOUND = 20
LENGTHS = (0, 1, 2, 3, 5, 8, 11, 16, 19, BOUND)
RANDOM = np.random.default_rng(5)


def cache(past: int) -> np.ndarray:
    return RANDOM.normal(size=(1, 2, past, 4)).astype(np.float32)


def filled(array: np.ndarray) -> np.ndarray:
    """A cache in the largest size. What does not exist is NaN."""
    whole = np.full((1, 2, BOUND, 4), np.nan, np.float32)
    whole[:, :, : array.shape[2]] = array
    return whole


@pytest.mark.parametrize("name", ["decoder step", "decoder step, core"])
def test_a_decoder_with_a_bound_agrees_with_fixed_lengths(name: str):
    archive = archive_of(name)
    symbol = (open_shapes(archive)["keys"] or ())[2]
    assert isinstance(symbol, str)
    bounded = imported(archive, dims={symbol: (0, BOUND)})
    assert names_of(bounded, "arg_names") == ["ids", "keys", "values", symbol]
    for past in LENGTHS:
        ids, keys, values = np.array([[3, 7]]), cache(past), cache(past)
        wanted = results(imported(archive, dims={symbol: past}), [ids, keys, values])
        found = results(bounded, [ids, filled(keys), filled(values), np.int32(past)])
        assert found[3] == past + 2
        agree([found[0], *(each[:, :, : past + 2] for each in found[1:3])], wanted)


def test_runs_of_one_program_take_caches_of_any_length(tmp_path: Path):
    path = tmp_path / "step.pt2"
    path.write_bytes(archive_of("decoder step"))
    symbol: Any = (open_shapes(path)["keys"] or ())[2]
    exe = compile_model(path, "tiny:8", dims={symbol: (0, 6)}, cache=False)
    for past in (0, 4):
        ids, keys, values = np.array([[3, 7]]), cache(past), cache(past)
        wanted = results(imported(path, dims={symbol: past}), [ids, keys, values])
        found = exe.run({"ids": ids, "keys": keys, "values": values})
        agree([np.asarray(each) for each in found.values()][:3], wanted)


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ((0, 21), r"--dim s\d+=0..21; the model was exported for 0 to 20"),
        ((3, 2), r"need an integer, 0 or more, or bounds"),
    ],
)
def test_bounds_that_the_export_does_not_allow_are_refused(dims: tuple[int, int], message: str):
    archive = archive_of("decoder step")
    symbol: Any = (open_shapes(archive)["keys"] or ())[2]
    with pytest.raises(InputError, match=message):
        imported(archive, dims={symbol: dims})


def test_a_symbol_inside_a_product_needs_bounds_of_the_axis():
    archive = archive_of("free sizes")
    with pytest.raises(InputError, match=r"2\*s44 .* no bounds; add --dim 2\*s44=LEAST..MOST"):
        imported(archive, dims={"s77": 2, "s44": (4, 8)})


# Single operators on a vector of 1 to 6 elements

N = 6


def bounded(*nodes: Any, outputs: list[str]) -> Any:
    """A program of x, [n, 3] with n up to 6."""
    archive = written({"x": (("n", 3), "float32")}, nodes, outputs, ranges={"n": (0, N)})
    return imported(archive, dims={"n": (0, N)})


def run(module: Any, rows: int) -> tuple[np.ndarray, list[np.ndarray]]:
    x = RANDOM.normal(size=(rows, 3)).astype(np.float32)
    whole = np.full((N, 3), np.nan, np.float32)
    whole[:rows] = x
    return x, results(module, [whole, np.int32(rows)])


SIZE = node_tree("sym_size.int", "$n", self="x", dim=0)
MORE = node_tree("_operator.add", "$m", a="$n", b=2)


@pytest.mark.parametrize("rows", [1, 4, N])
def test_shapes_of_lengths(rows: int):
    module = bounded(
        SIZE,
        MORE,
        node_tree("view.default", "flat", self="x", size=[-1]),
        node_tree("view.default", "back", self="flat", size=["$n", 3]),
        node_tree("unsqueeze.default", "apart", self="back", dim=1),
        node_tree("expand.default", "wide", self="apart", size=[-1, 2, -1]),
        node_tree("reshape.default", "y", self="wide", shape=[-1, 6]),
        node_tree("select.int", "last", self="x", dim=0, index=-1),
        node_tree("slice.Tensor", "tail", self="x", dim=0, start=1, end=2**63 - 1),
        node_tree("cat.default", "joined", tensors=["tail", "x"], dim=0),
        node_tree("sum.dim_IntList", "total", self="joined", dim=[0], keepdim=False),
        outputs=["y", "last", "total"],
    )
    x, (y, last, total, count) = run(module, rows)
    assert count == rows
    np.testing.assert_array_equal(y[:rows], np.repeat(x[:, None], 2, 1).reshape(rows, 6))
    np.testing.assert_array_equal(last, x[-1])
    np.testing.assert_allclose(total, x[1:].sum(0) + x.sum(0), rtol=1e-5)


@pytest.mark.parametrize("rows", [0, 1, N])
def test_no_elements_are_all_and_none_are_any(rows: int):
    module = bounded(
        node_tree("isfinite.default", "f", self="x"),
        node_tree("any.default", "a", self="f"),
        node_tree("all.default", "b", self="f"),
        outputs=["a", "b"],
    )
    _, (a, b) = run(module, rows)
    assert (bool(a), bool(b)) == (rows > 0, True)


def test_an_operator_that_needs_one_size_is_refused_with_a_remedy():
    group = node_tree("flip.default", "y", self="x", dims=[0])
    message = r"node 'fc' \(aten.flip.default.* at net.py:7|size of axis 0 of argument self"
    with pytest.raises(InputError, match=message) as error:
        bounded(group, outputs=["y"])
    assert "need one size for all runs: --dim n=1" in str(error.value)


def test_an_operator_without_an_entry_is_refused():
    node = node_tree("roll.default", "y", self="x", shifts=[1], dims=[0])
    with pytest.raises(InputError, match=r"operator aten.roll.default: a size depends on inputs"):
        bounded(node, outputs=["y"])


# Sizes that depend on values


@pytest.mark.parametrize("chosen", [(), (1,), (0, 2, 3), range(5)])
def test_rows_that_a_mask_chooses(chosen: Any):
    module = imported(
        written(
            {"x": ((5, 3), "float32"), "m": ((5,), "bool")},
            [
                node_tree("nonzero.default", "places", self="m"),
                node_tree("squeeze.dim", "place", self="places", dim=1),
                node_tree("index_select.default", "rows", self="x", dim=0, index="place"),
                node_tree("sum.dim_IntList", "total", self="rows", dim=[0], keepdim=False),
            ],
            ["rows", "total", "places"],
        )
    )
    x, mask = RANDOM.normal(size=(5, 3)).astype(np.float32), np.zeros(5, np.bool_)
    mask[list(chosen)] = True
    rows, total, places, count = results(module, [x, mask])
    assert count == mask.sum()
    np.testing.assert_array_equal(rows[: mask.sum()], x[mask])
    np.testing.assert_allclose(total, x[mask].sum(0), rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(places[: mask.sum()], np.argwhere(mask))


def up_to(most: int | None) -> bytes:
    """The first elements of x, as many as the number in n says."""
    number = node_tree("item.default", "$u0", self="n")
    part = node_tree("slice.Tensor", "y", self="x", dim=0, start=0, end="$u0")
    ranges: Any = {} if most is None else {"u0": (0, most)}
    return written(
        {"x": ((6,), "float32"), "n": ((), "int64")}, [number, part], ["y"], ranges=ranges
    )


@pytest.mark.parametrize("count", [0, 3, 5])
def test_a_number_with_bounds_may_be_a_size(count: int):
    x = np.arange(6, dtype=np.float32)
    found, size = results(imported(up_to(5)), [x, np.int64(count)])
    assert size == count
    np.testing.assert_array_equal(found[:count], x[:count])


@pytest.mark.parametrize("count", [-1, 6, 2**40])
def test_a_number_out_of_its_bounds_is_a_fault(count: int):
    with pytest.raises(Exception, match="index"):
        results(imported(up_to(5)), [np.zeros(6, np.float32), np.int64(count)])


def test_a_number_without_a_bound_is_refused_with_a_remedy():
    with pytest.raises(InputError, match=r"inputs \(n\).*torch._check\(number <= BOUND\)"):
        imported(up_to(None))
