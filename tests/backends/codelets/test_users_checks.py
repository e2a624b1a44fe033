"""A codelet that does not keep what it states is refused with its file and line."""

from collections.abc import Generator
from pathlib import Path

import pytest
from some_extensions import abele, loads_taken_back

HEAD = """import numpy as np

from abele.tools.extensions import codelet, ulps

"""

PLAIN = 'space="n", reads={"x": "n"}, writes={"out": "n"}, cycles=lambda n: 9 * n, bound=ulps(1)'
ROWS = PLAIN.replace('"x": "n"', '"x": "n, :"')

MISTAKES = {
    "reads_other_cells": (PLAIN, "def f(x):\n    return np.roll(x, 1)", "permuted cells"),
    "sums_all_cells": (PLAIN, "def f(x):\n    return x / x.max()", "one cell alone"),
    "has_a_state": (
        PLAIN,
        "SEEN = []\ndef f(x):\n    SEEN.append(0)\n    return x + len(SEEN)",
        "without a state",
    ),
    "draws_numbers": (
        PLAIN,
        "def f(x):\n    return x + np.random.rand()",
        "without random numbers",
    ),
    "price_nan": (
        PLAIN.replace("9 * n", 'float("nan")'),
        "def f(x):\n    return x + 1",
        "cycles of 1 cells are nan",
    ),
    "price_falls": (
        PLAIN.replace("9 * n", "900 // n"),
        "def f(x):\n    return x + 1",
        "cycles of 2 cells are 450, fewer than 900 of 1 cells",
    ),
    "price_0": (
        PLAIN.replace("9 * n", "0"),
        "def f(x):\n    return x + 1",
        "cycles of 1 cells are 0",
    ),
    "price_fails": (
        PLAIN.replace("9 * n", "1 / 0"),
        "def f(x):\n    return x + 1",
        "cycles of 1 cells: ZeroDivisionError",
    ),
    "bound": (ROWS, "def f(x):\n    return (x - x * x).sum(axis=1)", "further than its bound"),
    "narrow": (PLAIN, "def f(x):\n    return x.astype(np.float32)", "computes in the type"),
    "shape": (
        ROWS,
        "def f(x):\n    return x",
        "out has the shape [7, 4]; need [cells] for 7 cells",
    ),
    "integers_among_numbers": (
        PLAIN + ', types={"x": "numbers"}',
        "def f(x):\n    return x if x.dtype.kind == 'f' else np.roll(x, 1)",
        "permuted cells",
    ),
    "size_of_a_fraction": (
        PLAIN.replace('"n"', '"n, d = k whole"', 1).replace('"x": "n"', '"x": "n, d"'),
        "def f(x, *, k=2.5):\n    return x[:, 0]",
        "d = k; need a number, a dimension or a parameter that is an integer",
    ),
    "a_name_that_an_axis_has": (
        ROWS.replace('space="n"', 'space="n, x1 = 3 whole"'),
        "def f(x):\n    return x[:, 0]",
        "two dimensions are named x1",
    ),
    "nothing": (PLAIN, "def f(x):\n    pass", "out is a NoneType; need an array"),
    "two_results": (PLAIN, "def f(x):\n    return x, x", "2 results; need out"),
    "raises": (PLAIN, "def f(x):\n    raise KeyError(1)", "KeyError: 1"),
    "writes_operands": (PLAIN, "def f(x):\n    x += 1\n    return x", "read-only"),
    "infinities": (
        PLAIN,
        "def f(x):\n    assert np.isfinite(x).all()\n    return x",
        "AssertionError",
    ),
    "sensitivity": (
        PLAIN + ", sensitivity=2",
        "def f(x):\n    return x * 3",
        "out moves by 3 of what operands move; the sensitivity is 2",
    ),
    "twin": (
        PLAIN + ", numba=lambda x, out: None",
        "def f(x):\n    return x + 1",
        "need the same bytes",
    ),
    "twin_fails": (
        PLAIN + ", numba=lambda x: None",
        "def f(x):\n    return x + 1",
        "its function for numba: TypeError",
    ),
    "needs": (
        ROWS + ", needs=lambda x1: x1 > 100",
        "def f(x):\n    return x[:, 0]",
        "no sample meets `needs`",
    ),
    "needs_fails": (
        ROWS + ", needs=lambda x1: 1 / 0",
        "def f(x):\n    return x[:, 0]",
        "no sample meets `needs`",
    ),
    "samples": (
        PLAIN + ', samples={"x": lambda random, shape: 1 / 0}',
        "def f(x):\n    return x",
        "sample of x: ZeroDivisionError",
    ),
    "parameter": (PLAIN, "def f(x, *, k):\n    return x", "parameter k has no default"),
    "arguments": (
        PLAIN,
        "def f(y):\n    return y",
        "arguments y; need those of reads, in order: x",
    ),
    "map": (
        PLAIN.replace('"x": "n"', '"x": "n + m"'),
        "def f(x):\n    return x",
        "x: axis 'n + m': no dimension m; there are n",
    ),
    "write": (
        PLAIN.replace('"out": "n"', '"out": "2 * n"'),
        "def f(x):\n    return x",
        "out: axis '2 * n' of a write; need one dimension",
    ),
    "lost": (
        ROWS.replace('space="n"', 'space="n, m"'),
        "def f(x):\n    return x[:, 0]",
        "out does not have m",
    ),
    "space": (PLAIN.replace('space="n"', 'space="n!"'), "def f(x):\n    return x", "'n!'"),
    "type": (
        PLAIN + ', types={"x": "f31"}',
        "def f(x):\n    return x",
        "type 'f31' of x; need one of",
    ),
    "cycles": (
        PLAIN.replace("lambda n:", "lambda n, k:"),
        "def f(x):\n    return x",
        "cycles takes n, k; need the number of cells, then some of: nothing else",
    ),
    "name": (
        PLAIN.replace('"x"', '"name"'),
        "def f(name):\n    return name",
        "'name' is a name that operations have themselves",
    ),
    "gradient": (PLAIN + ", gradient=3", "def f(x):\n    return x", "need a codelet or a function"),
    "bound_number": (PLAIN.replace("ulps(1)", "2"), "def f(x):\n    return x", "need ulps(NUMBER)"),
}


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    monkeypatch.chdir(tmp_path)
    with loads_taken_back():
        yield


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_message_with_its_line(mistake: str):
    arguments, function, message = MISTAKES[mistake]
    path = Path(f"{mistake}_file.py")
    before, define, after = function.partition("def ")
    path.write_text(f"{HEAD}{before}@codelet({arguments})\n{define}{after}\n")
    line = 1 + (HEAD + before).count("\n")
    made = abele("opt", "none.mlir", "--load", path)
    assert made.exit_code == 2
    said = made.stderr.strip()
    assert said.startswith(f"error: {path}:{line}: codelet"), said
    assert message in said
    assert "\n" not in said
    # Nothing is left of the file.
    path.write_text(f"{HEAD}@codelet({PLAIN})\ndef f(x):\n    return x + 1\n")
    Path("some.mlir").write_text("builtin.module {}")
    again = abele("opt", "some.mlir", "--load", path)
    assert again.exit_code == 0, again.stderr


def test_a_codelet_with_all_that_it_may_state_is_accepted():
    Path("good.py").write_text(
        HEAD
        + """
def twin(x, out, k):
    for i in range(x.shape[0]):
        total = x[i, 0] * x[i, 0]
        for j in range(1, x.shape[1]):
            total += x[i, j] * x[i, j]
        out[i] = total * np.float32(k)


@codelet(
    space="n",
    reads={"x": "n, :"},
    writes={"out": "n"},
    cycles=lambda n, x1: 10 + n * x1,
    bound=ulps(8),
    needs=lambda x1: x1 > 7,
    numba=twin,
    samples={"x": lambda random, shape: random.uniform(1, 2, shape)},
)
def norm(x, *, k=2):
    total = x[:, 0] * x[:, 0]
    for j in range(1, x.shape[1]):
        total = total + x[:, j] * x[:, j]
    return total * x.dtype.type(k)
"""
    )
    Path("some.mlir").write_text("builtin.module {}")
    made = abele("opt", "some.mlir", "--load", "good.py")
    assert made.exit_code == 0, made.stderr
