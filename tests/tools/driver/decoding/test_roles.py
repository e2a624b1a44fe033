"""The names that exporters give to caches and to what else a decoder takes."""

import pytest

from abele.tools.driver.decoding.roles import NotADecoderError, is_cache, kept_caches, only


@pytest.mark.parametrize(
    ("past", "present"),
    [
        ("past_key_values.0.key", "present.0.key"),
        ("past_key_values.11.decoder.value", "present.11.decoder.value"),
        ("past_key_values.0.key", "present_key_values.0.key"),
        ("past_key_values_0_key", "present_0_key"),
        ("past_key_self_3", "present_key_self_3"),
        ("past_value_cross_3", "present_value_cross_3"),
        ("past_0", "present_0"),
        ("past0.key", "present0.key"),
        ("past_key.0", "new_key.0"),
        ("key_cache_in", "key_cache_out"),
        ("cache.0", "new_cache.0"),
        ("pkv_0", "present_0"),
    ],
)
def test_a_cache_is_paired_with_its_output_by_name(past: str, present: str):
    assert is_cache(past)
    outputs = ["logits", present, present + "0"]
    assert kept_caches(["input_ids", past], outputs, {}, "net") == {past: present}


@pytest.mark.parametrize("name", ["input_ids", "attention_mask", "cache_position", "repast"])
def test_other_inputs_are_no_caches(name: str):
    assert not is_cache(name)


@pytest.mark.parametrize(
    ("inputs", "outputs", "given", "match"),
    [
        (["past_0"], ["logits"], {}, "net: cache 'past_0' has no partner .* looked for present_0"),
        (["ids"], ["logits"], {}, "no input is a cache by its name; there are ids"),
        (["past_0"], ["present_0"], {"past_1": "y"}, r"--keep past_1=y: no input 'past_1'.*past_0"),
        (["past_0", "x"], ["present_0"], {"x": "present_0"}, "past_0 and x have the same partner"),
    ],
)
def test_caches_that_cannot_be_paired_are_refused(
    inputs: list[str], outputs: list[str], given: dict[str, str], match: str
):
    with pytest.raises(NotADecoderError, match=match):
        kept_caches(inputs, outputs, given, "net")


def test_a_name_that_the_user_gives_comes_first():
    given = {"past_0": "other"}
    assert kept_caches(["past_0"], ["present_0", "other"], given, "net") == given


def test_the_first_of_the_known_names_is_taken():
    assert only(["ids", "input_ids"], ("input_ids", "ids"), "net", "x") == "input_ids"
    with pytest.raises(NotADecoderError, match="net: no input of ids is among a, b; need one of c"):
        only(["a", "b"], ("c",), "net", "input of ids")
