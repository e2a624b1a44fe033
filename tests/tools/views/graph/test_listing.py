from io import StringIO

from rich.console import Console
from some_models import convolutions

from abele.backends.counts import counts
from abele.backends.graph import graph_of
from abele.tools.driver.compile import compile_model
from abele.tools.driver.executable import MACHINE
from abele.tools.views.graph.listing import graph_summary


def test_each_compute_set_has_a_row_and_all_together_the_last():
    exe = compile_model(convolutions(), target="tiny:8")
    module = exe.module_at(MACHINE)
    table = graph_summary(graph_of(module, exe.target))
    stream = StringIO()
    Console(file=stream, width=300).print(table)
    rows = [
        [cell.strip().replace(",", "") for cell in line.strip("│").split("│")]
        for line in stream.getvalue().splitlines()
        if line.startswith("│")
    ]
    found = counts(module)
    assert [(r[0], r[3], r[4]) for r in rows[:-1]] == [
        (s.name, str(s.vertices), str(s.edges)) for s in found.sets
    ]
    assert rows[-1][3:] == [str(found.vertices), str(found.edges), str(found.loop_edges)]
