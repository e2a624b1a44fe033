"""The free sizes of decoders, as options of compile_model."""

import pytest

from abele.tools.driver.decoding.roles import NotADecoderError
from abele.tools.driver.decoding.sizes import Sizes

GROWING = {
    "input_ids": ("batch", "new"),
    "attention_mask": ("batch", "past + new"),
    "past_key_values.0.key": ("batch", 2, "past", 8),
}
FIXED = {"ids": (1,), "position": (1,), "past0.key": (12, 8)}


def test_a_cache_whose_size_is_free_grows_up_to_a_bound():
    sizes = Sizes(GROWING, "net", {})
    assert sizes.ids == "input_ids"
    assert sizes.ways == [(True, True), (True, False), (False, True), (False, False)]
    given = sizes.given(4, 10, grows=True)
    # A run begins behind 0, 4 or 8 tokens.
    assert given == {"dims": {"batch": 1, "new": (1, 4), "past": (0, 8)}, "values": {}}
    assert sizes.given(1, 10, grows=True)["dims"] == {"batch": 1, "new": 1, "past": (0, 9)}
    assert sizes.given(1, 1, grows=True)["dims"]["past"] == (0, 1)
    assert sizes.given(1, 10, grows=False)["dims"]["past"] == 10


def test_a_model_whose_sizes_are_known_is_taken_as_it_is():
    sizes = Sizes(FIXED, "net", {})
    assert sizes.ways == [(False, True)]
    assert sizes.given(1, 10, grows=True) == {"dims": {}, "values": {}}


def test_sizes_and_values_of_the_user_come_first():
    options = {"dims": {"past": 6, "batch": 2}, "values": {"use_cache_branch": [False]}, "x": 3}
    sizes = Sizes({**GROWING, "use_cache_branch": (1,)}, "net", options)
    assert sizes.rest == {"x": 3}
    given = sizes.given(1, 10, grows=True)
    assert given["dims"] == {"batch": 2, "new": 1, "past": 6}
    assert given["values"] == {"use_cache_branch": [False]}


def test_a_merged_model_takes_the_branch_with_the_cache():
    given = Sizes({**GROWING, "use_cache_branch": (1,)}, "net", {}).given(1, 4, grows=True)
    assert given["values"]["use_cache_branch"].tolist() == [True]


def test_the_size_of_a_mask_with_a_name_of_its_own_follows():
    shapes = {**GROWING, "attention_mask": ("batch", "total"), "total_sequence_length": ()}
    sizes = Sizes(shapes, "net", {})
    assert sizes.given(1, 10, grows=True)["dims"]["total"] == (1, 10)
    given = sizes.given(1, 10, grows=False)
    assert given["dims"]["total"] == 10
    assert given["values"]["total_sequence_length"].tolist() == 10


def test_caches_with_several_free_sizes_are_refused():
    shapes = {**GROWING, "past_key_values.0.value": ("batch", 2, "rows", 8)}
    with pytest.raises(NotADecoderError, match="the sizes past, rows of caches are free; need one"):
        Sizes(shapes, "net", {})


@pytest.mark.parametrize("size", [4, (1, 4), "1..4"])
def test_a_number_of_new_tokens_other_than_1_is_refused(size: object):
    assert Sizes(GROWING, "net", {"dims": {"new": 1}}).ways == [(False, True), (False, False)]
    with pytest.raises(NotADecoderError, match=r"net: --dim new=.*4; .*--at-once"):
        Sizes(GROWING, "net", {"dims": {"new": size}})
