from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.table import Table
from some_models import convolutions

from abele.backends.counts import counts
from abele.backends.graph import graph_of
from abele.tools.driver.compile import compile_model
from abele.tools.driver.executable import MACHINE
from abele.tools.driver.training import Training
from abele.tools.views.graph.listing import chip_rows, graph_summary
from abele.tools.views.graph.summaries import chip_table


def shown(table: Table) -> list[list[str]]:
    """The cells of a table's rows."""
    stream = StringIO()
    Console(file=stream, width=300).print(table)
    return [
        [cell.strip().replace(",", "") for cell in line.strip("│").split("│")]
        for line in stream.getvalue().splitlines()
        if line.startswith("│")
    ]


def test_each_compute_set_has_a_row_and_all_together_the_last():
    exe = compile_model(convolutions(), target="tiny:8")
    module = exe.module_at(MACHINE)
    rows = shown(graph_summary(graph_of(module, exe.target)))
    found = counts(module)
    assert [(r[0], r[3], r[4]) for r in rows[:-1]] == [
        (s.name, str(s.vertices), str(s.edges)) for s in found.sets
    ]
    sizes = (found.vertices, found.edges, found.connections, found.loop_edges)
    assert rows[-1][3:] == list(map(str, sizes))


def test_a_step_of_training_has_a_row_for_each_phase():
    exe = compile_model(convolutions(), target="tiny:8", train=Training(loss="mean_square"))
    module = exe.module_at(MACHINE)
    rows = shown(graph_summary(graph_of(module, exe.target)))
    found = counts(module)
    assert [row[3:7] for row in rows[-4:-1]] == [
        [phase, str(each.vertices), str(each.edges), str(each.connections)]
        for phase, each in found.phases.items()
    ]
    assert list(found.phases) == ["forward", "backward", "update"]
    assert {row[3] for row in rows[:-4]} == set(found.phases)


def test_a_machine_of_several_chips_has_a_row_for_each(tmp_path: Path):
    (tmp_path / "net.mlir").write_text(
        "func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {"
        "%0 = nn.softmax %x axis 0 : (tensor<64x64xf32>) -> tensor<64x64xf32> "
        "func.return %0 : tensor<64x64xf32> }"
    )
    target = "tiny:16,links.topology=ladder,links.chips=4,links.first_word_ns=0"
    exe = compile_model(tmp_path / "net.mlir", target, cache=False)
    graph = graph_of(exe.module_at("exchange"), exe.target)
    rows = list(chip_rows(graph))
    assert [name for name, *_ in rows] == [*(f"on chip {k}" for k in range(4)), "between chips"]
    *on_chips, between = rows
    assert sum(vertices for _, vertices, _, _ in on_chips) == graph.vertex_count
    assert sum(edges for _, _, edges, _ in on_chips) == graph.edge_count
    assert sum(connections for *_, connections in on_chips) == graph.connection_count
    assert between == ("between chips", None, graph.by_chip.between, None)
    assert chip_table(graph)["edges_in"].sum() == graph.by_chip.between
    assert chip_table(graph)["edges_out"].sum() == graph.by_chip.between
    within = chip_table(graph)["edges_within"].sum()
    assert within == graph.edge_count - graph.by_chip.between
