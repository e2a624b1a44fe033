"""Blocks that repeat: found whole, in order, and where their names say that they begin."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as some

from abele.tools.views.report.blocks import Repeat, repeated_blocks, repeats


def found_in(text):
    return [(text[r.start : r.start + r.period], r.count) for r in repeats(text, ["x"] * len(text))]


def test_the_longest_stretch_is_folded():
    assert found_in("sabcabcabce") == [("abc", 3)]
    assert found_in("abbbcc") == [("b", 3), ("c", 2)]
    assert found_in("abab") == [("ab", 2)]
    assert found_in("abcd") == []
    assert found_in("") == []


def test_a_block_of_equal_blocks_is_the_shortest_one():
    assert found_in("abababab") == [("ab", 4)]


def test_a_block_begins_where_its_names_do():
    # The normalisation before the first block looks like the one that ends each block.
    names = ["embed/norm", "0/mul", "0/norm", "1/mul", "1/norm", "2/mul", "2/norm"]
    assert repeats("nmnmnmn", names) == [Repeat(1, 2, 3)]


def operations(layers, kinds, size):
    return {
        "layer": list(layers),
        "phase": [""] * len(layers),
        "kind": list(kinds),
        "resident_bytes": np.zeros(len(layers), np.int64),
        "value_bytes": np.array(size),
    }


def plans(spaces):
    return {"operation": np.arange(len(spaces)), "space": list(spaces)}


def test_blocks_are_of_whole_layers():
    table = operations("aabb", "mrmr", [4, 4, 4, 4])
    assert repeated_blocks(table, plans([])) == [[[0, 1], [2, 3]]]
    one_layer = operations("aaaa", "mrmr", [4, 4, 4, 4])
    assert repeated_blocks(one_layer, plans([])) == []


def test_blocks_of_other_sizes_are_others():
    table = operations("abcd", "mmmm", [4, 4, 8, 8])
    assert repeated_blocks(table, plans([])) == [[[0], [1]], [[2], [3]]]
    same_bytes = operations("abcd", "mmmm", [4, 4, 4, 4])
    assert repeated_blocks(same_bytes, plans(["o=1", "o=2", "o=2", "o=3"])) == [[[1], [2]]]


@given(some.text("abc", max_size=30))
def test_repeats_follow_each_other_and_are_equal(text):
    at = 0
    for each in repeats(text, list(text)):
        assert each.count >= 2
        assert at <= each.start
        at = each.stop
        block = text[each.start : each.start + each.period]
        assert text[each.start : each.stop] == block * each.count
    assert at <= len(text)


@given(some.text("abc", min_size=1, max_size=5), some.integers(2, 5))
def test_a_repeated_text_has_nothing_left_over(block, count):
    covered = sum(each.period * each.count for each in repeats(block * count, ["x"] * 99))
    assert covered == len(block) * count
