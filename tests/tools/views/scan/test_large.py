"""What a large graph takes, in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from lengths import large

SCRIPT = Path(__file__).parents[3] / "large_graph.py"


@pytest.mark.slow
@pytest.mark.parametrize(("vertices", "edges"), [(100_000, 600_000), large(400_000, 2_500_000)])
def test_drawing_many_vertices_takes_the_predicted_memory(vertices: int, edges: int):
    run = subprocess.run(
        [sys.executable, str(SCRIPT), str(vertices), str(edges), "1024"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(run.stdout)
    assert (found["vertices"], found["edges"]) == (vertices, edges)
    assert found["peak_bytes"] < found["needed_bytes"] < 2.5 * found["peak_bytes"]
    assert found["purity"] >= 0.95
