"""The summary of a run says why tests are skipped, and its log what each test costs."""

import subprocess
import sys
from pathlib import Path

from cost_log import COLUMNS

TESTS = """
import subprocess, sys
import pytest
pytest.importorskip("no_such_module")
"""

MORE = """
import subprocess, sys
import pytest

KEPT = []

@pytest.mark.parametrize("n", range(3))
def test_tool(n):
    pytest.skip("no such tool")

@pytest.mark.skipif(True, reason="no such host")
def test_host():
    pass

def test_work():
    KEPT.append(bytearray(b"x") * 50_000_000)
    busy = "import time; e = time.process_time() + 0.2\\nwhile time.process_time() < e: pass"
    subprocess.run([sys.executable, "-c", busy], check=True)
"""


def run(folder: Path, *options: str) -> str:
    (folder / "test_some.py").write_text(TESTS)
    (folder / "test_more.py").write_text(MORE)
    path = str(Path(__file__).parent)
    command = [sys.executable, "-c", f"import sys; sys.path.append({path!r}); import pytest;"]
    command[-1] += "sys.exit(pytest.main())"
    plugins = ("-p", "cost_log", "-p", "skip_reasons", "-p", "no:cacheprovider", "--rootdir", ".")
    done = subprocess.run(
        [*command, *plugins, *options], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_reasons_are_counted_and_costs_are_logged(tmp_path: Path):
    printed = run(tmp_path, "-n", "2", "--log-cost", "costs")
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    begin = next(i for i, line in enumerate(lines) if "skipped tests, by reason" in line)
    assert lines[begin + 1] == "3 no such tool (test_more.py)"
    assert "1 no such host (test_more.py)" in lines[begin + 2 : begin + 4]
    assert (
        "1 could not import 'no_such_module': No module named 'no_such_module' (test_some.py)"
    ) in lines
    head, *rows = [line.split("\t") for line in (tmp_path / "costs").read_text().splitlines()]
    assert tuple(head) == COLUMNS
    costs = {name.partition("::")[2]: list(map(float, numbers)) for name, *numbers in rows}
    assert costs.keys() == {"test_work", "test_host", *(f"test_tool[{n}]" for n in range(3))}
    wall, own, children, before, after = costs["test_work"]
    assert wall > children >= 0.2 > own
    assert after - before > 40
    assert costs["test_host"][2] == 0
