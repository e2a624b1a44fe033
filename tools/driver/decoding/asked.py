"""What a decoder is compiled for: to read a prompt, or to generate tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

PAST, TOKEN, COUNT, ENDS = "past", "token", "count", "ends"
"""Inputs of a program that generates: how many tokens the cache holds, the token behind them, how
many tokens to generate, and those that end the text."""

TOKENS, MADE, HOLDS = "tokens", "made", "held"
"""Its outputs: the tokens, how many there are, and how many tokens the cache holds then."""

MOST_ENDS = 8
"""The most tokens that end a text."""

BOUNDS = ("top_k", "top_p")
"""The inputs that bound which tokens may be drawn. The program searches each of these bounds."""

SAMPLING, LOOP = "sampling", "loop over tokens"
"""The names of what is added to a model, in tables."""

CONTEXT = "abele.context"
"""The attribute of a module that is the number of tokens that a cache of one size holds."""

VOCABULARY = "abele.vocabulary"
"""The attribute of a module that is the number of tokens that a decoder knows."""


@dataclass(frozen=True)
class Decoding:
    """What a decoder is compiled for.

    Attributes:
        tokens: the most tokens that a run generates; 0 for a program that reads a prompt, and
            returns the token that follows.
        drawn: whether tokens are drawn by their scores. Otherwise, the token with the highest score
            follows.
        bounds: those of BOUNDS that say which tokens may be drawn.
        context: how many tokens the cache holds; 0 if that is not known. A cache of one size may
            have more room.
        check: called with the size of the vocabulary before any pass runs; it may raise TextError.
            Compiled programs do not depend on it, and a program from the cache does not call it,
            because that would read the model again.
    """

    tokens: int = 0
    drawn: bool = False
    bounds: tuple[str, ...] = BOUNDS
    context: int = 0
    check: Callable[[int], None] | None = field(default=None, compare=False, repr=False)
