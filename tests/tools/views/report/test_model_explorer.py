"""The graph for Model Explorer: nodes, edges, and costs."""

import json

import pytest
from some_models import convolutions

from abele.tools.driver.compile import compile_model
from abele.tools.views.report.collect import Report, collect
from abele.tools.views.report.model_explorer import COSTS, GRAPH, explorer_files


@pytest.fixture(scope="module")
def report() -> Report:
    return collect(compile_model(convolutions(), target="tiny:8"))


def test_nodes_are_operations_and_edges_are_values(report: Report):
    (graph,) = json.loads(explorer_files(report)[GRAPH])["graphs"]
    nodes = {each["id"]: each for each in graph["nodes"]}
    assert len(nodes) == len(report.tables["operations"]["name"])
    for node in nodes.values():
        assert {each["sourceNodeId"] for each in node["incomingEdges"]} <= set(nodes) - {node["id"]}
    operations = report.tables["operations"]
    by_name = dict(zip(operations["name"], map(str, operations["operation"]), strict=True))
    second = nodes[by_name["the_c1"]]
    assert by_name["the_c0+the_r0"] in {e["sourceNodeId"] for e in second["incomingEdges"]}


def test_costs_are_node_data(report: Report):
    files = explorer_files(report)
    (data,) = json.loads(files[COSTS["cycles"]]).values()
    assert sum(each["value"] for each in data["results"].values()) == pytest.approx(
        report.program["cycles"], abs=50
    )
    (used,) = json.loads(files[COSTS["utilisation"]]).values()
    assert all(each["value"] is not None for each in used["results"].values())
