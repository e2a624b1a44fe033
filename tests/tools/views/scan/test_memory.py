import pytest
from layered_graph import LayeredGraph

from abele.ir.errors import InputError
from abele.tools.views.scan.memory import check_memory, needed_bytes


def test_a_small_graph_fits():
    check_memory(LayeredGraph(), 256)


def test_a_picture_that_does_not_fit_in_memory_suggests_one_that_does():
    graph = LayeredGraph(("a", "b"), size=400_000, fan=1)
    needed = needed_bytes(graph, 256)
    with pytest.raises(InputError, match="need about 0.* GB of memory.*; --sample 1/2 draws"):
        check_memory(graph, 256, available=needed - 1)
    check_memory(graph, 256, available=needed)


def test_a_sheet_that_does_not_fit_is_not_helped_by_sampling():
    with pytest.raises(InputError, match="need a smaller --size than 8,192"):
        check_memory(LayeredGraph(), 8192, available=1_000_000_000)
