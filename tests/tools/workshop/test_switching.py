from some_models import model, node, random

from abele.tools.workshop.switching import NETWORKS, add_rows, sessions, tables


def test_programs_and_changes_have_rows_for_each_way_to_compile():
    made = model([node("MatMul", "x w", "y")], {"x": ["N", 6]}, ["y"], {"w": random((6, 4))})
    programs = {str(n): {"model": made, "batch": n} for n in (1, 2, 3)}
    found = sessions(programs, "tiny:8", [10])
    assert list(found) == ["alone", "10 runs"]
    few, many = tables("tiny:8")
    for how, session in found.items():
        add_rows(few, many, "dense", how, session)
    assert (few.row_count, many.row_count) == (6, 12)
    columns = [list(column.cells) for column in few.columns]
    assert columns[3][0] == columns[4][0] == columns[3][3]
    assert [next(iter(column.cells)) for column in many.columns][:3] == ["dense", "alone", "1 -> 2"]


def test_every_network_has_programs():
    assert {"resnet50", "bert", "squeezenet", "alexnet"} <= set(NETWORKS)
    assert [each["batch"] for each in NETWORKS["resnet50"]().values()] == [1, 4]
