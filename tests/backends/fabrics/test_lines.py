"""The busiest link on the way of each flow, against every link looked at."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from abele.backends.fabrics.lines import OnLines, busiest_on_the_way

LINES, LENGTH, STREAMS = 3, 7, 4

rows = st.lists(
    st.tuples(
        st.integers(0, LINES - 1),
        st.integers(0, LENGTH - 1),
        st.integers(1, 9),
        st.integers(0, STREAMS - 1),
    ),
    max_size=12,
)


def by_hand(flows: OnLines) -> list[int]:
    """The same, link by link: link (line, i, up) joins places i and i + 1."""
    carried: dict[tuple[int, int, bool], dict[int, int]] = {}
    ways: list[list[tuple[int, int, bool]]] = []
    for line, a, b, n, stream in zip(
        flows.line, flows.start, flows.end, flows.bytes, flows.stream, strict=True
    ):
        way = [(int(line), i, bool(a < b)) for i in range(min(a, b), max(a, b))]
        ways.append(way)
        for link in way:
            of = carried.setdefault(link, {})
            of[int(stream)] = of.get(int(stream), 0) + int(n)
    most = {int(s): int(n) for s, n in zip(flows.stream, flows.at_most, strict=True)}
    loads = {k: sum(min(n, most[s]) for s, n in of.items()) for k, of in carried.items()}
    return [max((loads[link] for link in way), default=0) for way in ways]


@given(rows, st.lists(st.integers(0, LENGTH - 1), min_size=STREAMS, max_size=STREAMS), st.data())
def test_a_link_carries_each_word_of_a_stream_once(found, starts: list[int], data: st.DataObject):
    line, end, amount, stream = (
        (np.array(each, np.int64) for each in zip(*found))
        if found
        else (np.zeros((4, 0), np.int64))
    )
    limits = np.array([data.draw(st.integers(9, 40)) for _ in range(STREAMS)])
    flows = OnLines(line, np.array(starts)[stream], end, amount, stream, limits[stream])
    assert busiest_on_the_way(flows, LINES, LENGTH).tolist() == by_hand(flows)


def test_what_all_places_want_crosses_each_link_once():
    count = 5
    flows = OnLines(
        line=np.zeros(count, np.int64),
        start=np.zeros(count, np.int64),
        end=np.arange(1, count + 1),
        bytes=np.full(count, 100),
        stream=np.zeros(count, np.int64),
        at_most=np.full(count, 100),
    )
    assert busiest_on_the_way(flows, 1, count + 1).tolist() == [100] * count
