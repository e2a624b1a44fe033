import subprocess
import sys
from pathlib import Path

import pytest

DRAW = """
import sys
from hypothesis import Phase, given, settings, strategies as st

if {ignore}:
    from same_examples import ignore_what_is_imported
    ignore_what_is_imported()
if {imported}:
    import some_numbers

drawn = []

@settings(derandomize=True, database=None, max_examples=300, phases=[Phase.generate])
@given(st.integers())
def holds(number):
    drawn.append(number)

holds()
print(drawn)
"""


def drawn(folder: Path, **how: bool) -> str:
    (folder / "some_numbers.py").write_text("N = [918273645, 12345678987, 55555577777]\n")
    command = [sys.executable, "-c", DRAW.format(**how)]
    path = f"{folder}:{Path(__file__).parent}"
    run = subprocess.run(
        command, cwd=folder, env={"PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    return run.stdout


@pytest.mark.parametrize("ignore", [True, False])
def test_examples_in_ci_do_not_depend_on_what_is_imported(tmp_path: Path, ignore: bool):
    alone = drawn(tmp_path, ignore=ignore, imported=False)
    # Without the call, Hypothesis draws numbers of an imported module.
    assert (drawn(tmp_path, ignore=ignore, imported=True) == alone) is ignore
