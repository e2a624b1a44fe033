"""What the inputs and outputs of a decoder are for, by the names that exporters give them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ....ir.support.errors import InputError
from ....ir.support.suggestions import suggestion

IDS = ("input_ids", "decoder_input_ids", "ids", "tokens", "input", "inputs")
"""The names of an input of token ids."""

POSITIONS = (
    *("position_ids", "positions", "position", "cache_position", "input_pos", "write_indices"),
)
"""The names of inputs that say where tokens stand in the sequence."""

MASKS = ("attention_mask", "mask")
"""The names of inputs that are 1 for tokens that exist."""

LAST_KEYS = ("seqlens_k",)
"""The names of inputs that are the number of tokens that exist, minus 1."""

TOTALS = ("total_sequence_length", "nonpad_kv_seqlen")
"""The names of inputs that are the number of tokens that exist."""

SCORES = ("logits", "scores", "lm_logits", "output")
"""The names of an output of scores by token."""

BRANCH = "use_cache_branch"
"""The input with which a merged model takes the branch that reads the cache."""

CACHE = re.compile(r"(^|[._])(past|cache|pkv)")
"""What the name of a cache has."""

PARTNERS = (
    ("past_key_values", "present"),
    ("past_key_values", "present_key_values"),
    ("past_key_values", "new_key_values"),
    ("past_key_values", "updated_key_values"),
    ("past", "present"),
    ("past", "new"),
    ("cache_in", "cache_out"),
    ("in_cache", "out_cache"),
    ("cache", "present"),
    ("cache", "new_cache"),
    ("cache", "updated_cache"),
    ("pkv", "present"),
)
"""What stands in the name of the output where a word of the input's name does."""


class NotADecoderError(InputError):
    """A model is not a decoder, or its names do not say how it is one."""


class TextError(InputError):
    """A text that a decoder cannot go on with, or a way to draw tokens that it does not have."""


def is_cache(name: str) -> bool:
    """Whether an input is a cache by its name."""
    return CACHE.search(name) is not None and name not in POSITIONS


def partners(name: str) -> list[str]:
    """The names of outputs that may be the partner of a cache, the likeliest first."""
    found: list[str] = []
    for old, new in PARTNERS:
        if old in name:
            made = name.replace(old, new, 1)
            # present_0_key and present.0.key are the partners of past_key_values_0_key.
            found += [made, made.replace("present_key_values", "present")]
    return list(dict.fromkeys(found))


def kept_caches(
    inputs: Iterable[str], outputs: Sequence[str], given: Mapping[str, str], place: str
) -> dict[str, str]:
    """The caches of a model, each with the output that it receives.

    Raises NotADecoderError for a name that no input has, for a cache without a partner, for two
    with the same one, and for a model without a cache.

    Args:
        inputs: that may be caches.
        given: the pairs that the user names.
    """
    found: dict[str, str] = {}
    inputs = list(inputs)
    for name in given:
        if name not in inputs:
            raise NotADecoderError(
                f"{place}: --keep {name}={given[name]}: no input {name!r}{suggestion(name, inputs)}"
            )
    for name in inputs:
        if name in given or not is_cache(name):
            continue
        tried = partners(name)
        partner = next((each for each in tried if each in outputs), None)
        if partner is None:
            raise NotADecoderError(
                f"{place}: cache {name!r} has no partner among the outputs; looked for "
                f"{', '.join(tried)}; name it (--keep {name}=OUTPUT)"
                f"{suggestion(tried[0], outputs)}"
            )
        found[name] = partner
    found.update(given)
    if not found:
        raise NotADecoderError(
            f"{place}: no input is a cache by its name; there are {', '.join(inputs)}; need a "
            "decoder with its cache as inputs and outputs, or the names of these "
            "(--keep INPUT=OUTPUT)"
        )
    twice = sorted({each for each in found.values() if [*found.values()].count(each) > 1})
    if twice:
        names = [name for name, partner in found.items() if partner == twice[0]]
        raise NotADecoderError(
            f"{place}: {' and '.join(names)} have the same partner {twice[0]!r}; need one for each "
            "(--keep INPUT=OUTPUT)"
        )
    return found


def only(names: Iterable[str], known: Sequence[str], place: str, what: str) -> str:
    """The name that is first among those known. Raises NotADecoderError if there is none.

    Args:
        what: it is, in the message.
    """
    listed = list(names)
    for name in known:
        if name in listed:
            return name
    raise NotADecoderError(
        f"{place}: no {what} is among {', '.join(listed) or 'nothing'}; need one of "
        f"{', '.join(known)}"
    )
