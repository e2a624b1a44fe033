"""A decoder of a language model on one machine: it reads a prompt, and generates tokens."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr

from ....ir.support.errors import DoesNotFit, InputError
from ....ir.upstream import ModuleOp
from ..argument_kinds import NUMBER
from ..compile import compile_model
from ..executable import MACHINE, Executable
from ..not_copied import NotCopied
from ..request import IN_MEMORY, RUNS, found_front_end
from ..session import Session
from .asked import (
    BOUNDS,
    CONTEXT,
    COUNT,
    ENDS,
    MOST_ENDS,
    PAST,
    TOKEN,
    TOKENS,
    VOCABULARY,
    Decoding,
)
from .roles import NotADecoderError, TextError
from .sizes import Sizes
from .token_costs import TokenCosts

if TYPE_CHECKING:
    from ....backends.target import Target
    from ...importers.front_ends import Model

READ, GENERATE = "read", "generate"
"""The names of the two programs of a decoder's session."""

MOST_SEED = 2**32 - 1


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn.

    Attributes:
        temperature: scores are divided by it; above 0.
        top_k: so many tokens with the highest scores may be drawn; 0 for all.
        top_p: the fewest of them whose chances together reach this share may be drawn.
        seed: of the random bits, which also depend on the position of the token.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def check(self, words: int) -> None:
        """Raise TextError for options out of their ranges.

        Args:
            words: of the vocabulary.
        """
        if not (NUMBER.accepts(self.temperature) and 0 < self.temperature < np.inf):
            raise TextError(f"temperature {self.temperature}; need a number above 0")
        if not 0 <= index(self.top_k) <= words:
            raise TextError(f"top-k {self.top_k}; need 0..{words:,}, the size of the vocabulary")
        if not (NUMBER.accepts(self.top_p) and 0 < self.top_p <= 1):
            raise TextError(f"top-p {self.top_p}; need a number above 0, at most 1")
        if not 0 <= index(self.seed) <= MOST_SEED:
            raise TextError(f"seed {self.seed}; need 0..{MOST_SEED}")

    def inputs(self, words: int, bounds: Collection[str]) -> dict[str, Any]:
        """The inputs of a program that draws tokens.

        Raises InputError for a bound that the program does not search.

        Args:
            words: of the vocabulary.
            bounds: those that it searches.
        """
        found = {"temperature": np.float32(self.temperature), "seed": np.uint32(self.seed)}
        given = {"top_k": (self.top_k or words, words), "top_p": (self.top_p, 1)}
        for name, (value, every) in given.items():
            if name in bounds:
                found[name] = np.float32(value)
            elif value != every:
                raise InputError(f"{name} {value}; the decoder is compiled without it (bounds)")
        return found


class Decoder(NotCopied):
    """A decoder of a language model on one machine, with the cache and the weights on its tiles.

    `Decoder.compiled` makes it of a model that has its cache as inputs and outputs. `generate`
    reads a prompt, and generates the tokens that follow.

    Attributes:
        session: of two programs, READ and GENERATE.
        prompt: the most tokens that a run of READ takes.
        context: how many tokens the cache holds.
        tokens: the most tokens that a run of GENERATE makes.
        drawn: whether tokens are drawn by their scores.
        words: the size of the vocabulary.
    """

    def __init__(self, session: Session, ids: str, prompt: int, decoding: Decoding) -> None:
        self.session, self.prompt = session, prompt
        self.tokens, self.drawn = decoding.tokens, decoding.drawn
        self._bounds = decoding.bounds
        self._ids, self._texts = ids, 0
        reader = session.programs[READ]
        self._ids_tensor = next(each for each in reader.inputs if each.name == ids)
        kept = reader.signature.kept_sizes
        self._past = kept[0].lengths[0] if kept else PAST
        module = session.programs[GENERATE].module_at(MACHINE)
        words = _number(module, VOCABULARY)
        assert words is not None
        self.words = words
        self.context = min(decoding.context, _number(module, CONTEXT) or decoding.context)

    @classmethod
    def compiled(
        cls,
        model: Model,
        target: str | Target | None = None,
        *,
        prompt: int = 16,
        context: int = 128,
        tokens: int = 16,
        drawn: bool = False,
        bounds: Sequence[str] = BOUNDS,
        check: Callable[[int], None] | None = None,
        runs: float = RUNS,
        **options: Any,
    ) -> Decoder:
        """The decoder of a model, compiled.

        Raises InputError for a model that is not a decoder with its cache as inputs and outputs,
        and what compile_model raises.

        Args:
            model: takes token ids and caches, and returns scores and the caches with new rows. It
                may take positions, a mask of tokens that exist, and numbers of tokens.
            prompt: the most tokens that are read at once. A longer prompt takes several runs. A
                model that only takes one number of tokens reads one at a time.
            context: how many tokens the cache holds.
            tokens: the most tokens that a run generates.
            drawn: whether tokens are drawn by their scores; the best one follows otherwise.
            bounds: which of top_k and top_p a Sampling may ask for. Each costs a search.
            check: called with the size of the vocabulary before any pass runs, such as to refuse
                the first prompt (check_text). A program from the cache does not call it.
            runs: those of each program that are expected between two changes; see Session.
            options: of compile_model. `keep` names caches that their names do not tell.
        """
        for name, value in (("prompt", prompt), ("context", context), ("tokens", tokens)):
            if index(value) < 1:
                raise InputError(f"{name} {value}; need 1 or more")
        for name in bounds:
            if name not in BOUNDS:
                raise InputError(f"bounds: {name!r}; need {' or '.join(BOUNDS)}")
        front_end = found_front_end(model)
        if front_end.open_shapes is None:
            raise InputError(f"{front_end.name}: no model of this kind is known to be a decoder")
        place = os.fspath(model) if isinstance(model, str | os.PathLike) else IN_MEMORY
        sizes = Sizes(front_end.open_shapes(model), place, options)
        tell: Callable[[str], None] | None = options.get("on_note")
        generating: dict[bool, Executable] = {}
        failed: dict[bool, InputError] = {}
        asked = Decoding(tokens, drawn, tuple(bounds), context, check)
        reads = replace(asked, tokens=0)
        common: dict[str, Any] = {"model": model, "target": target, "runs": runs, **sizes.rest}
        for several, grows in sizes.ways:
            if several and prompt == 1:
                continue
            at_once = min(prompt, context) if several else 1
            try:
                if grows not in generating:
                    own = sizes.given(1, context, grows=grows)
                    own |= {"decoding": asked, "beside": ()}
                    generating[grows] = compile_model(**{**common, **own})
                first = generating[grows]
                own = sizes.given(at_once, context, grows=grows)
                own |= {"decoding": reads, "beside": (first,)}
                reading = compile_model(**{**common, **own})
            except InputError as error:
                if isinstance(error, DoesNotFit | TextError) or (
                    isinstance(error, NotADecoderError) and not failed
                ):
                    raise
                failed[several] = error
                continue
            if True in failed and not several and tell is not None:
                tell(f"reads one token of the prompt at a time, because otherwise: {failed[True]}")
            alone = {GENERATE: first.profile["cycles"]}
            session = Session({GENERATE: first, READ: reading}, alone)
            return cls(session, sizes.ids, at_once, asked)
        # The last way demands least of the model.
        raise failed[False] if False in failed else failed[True]

    @cached_property
    def costs(self) -> TokenCosts:
        """The cycles of a token, by layer."""
        return TokenCosts.of(
            self.session.programs[GENERATE].module_at(MACHINE), self.session.target
        )

    def generate(
        self,
        prompt: Sequence[int],
        tokens: int,
        *,
        ends: Sequence[int] = (),
        sampling: Sampling | None = None,
    ) -> Iterator[int]:
        """The tokens that follow a prompt, one after the other. The cache holds one text at a time.

        Raises InputError for a prompt that is empty or longer than the cache, and for tokens that
        the vocabulary does not have.

        Args:
            tokens: the most tokens to generate. Those that the cache has no room for are refused.
            ends: tokens that end the text. The last one returned may be one of them.
            sampling: how tokens are drawn, by a decoder that draws.
        """
        asked = self._asked(prompt, tokens, ends, sampling)
        return self._generated([index(each) for each in prompt], tokens, frozenset(ends), asked)

    def _generated(
        self, prompt: list[int], tokens: int, ends: frozenset[int], asked: Mapping[str, Any]
    ) -> Iterator[int]:
        past, token = 0, 0
        self._texts += 1
        text = self._texts
        for at in range(0, len(prompt), self.prompt):
            ids = np.array(prompt[at : at + self.prompt], self._ids_tensor.dtype)
            ids = ids.reshape(*[1] * (len(self._ids_tensor.shape) - 1), -1)
            given = {self._ids: ids, self._past: np.int32(past), **asked}
            token = int(self.session.run(given, READ)[TOKEN])
            past += ids.size
        yield token
        made = 1
        listed = np.full(MOST_ENDS, -1, np.int32)
        listed[: len(ends)] = sorted(ends)
        while made < tokens and token not in ends:
            if self._texts != text:
                raise InputError("another prompt has been read, so the cache of this one is gone")
            given = {
                TOKEN: np.int32(token),
                self._past: np.int32(past),
                COUNT: np.int32(min(self.tokens, tokens - made)),
                ENDS: listed,
                **asked,
            }
            found = self.session.run(given, GENERATE)[TOKENS]
            yield from map(int, found)
            past, made, token = past + len(found), made + len(found), int(found[-1])

    def _asked(
        self, prompt: Sequence[int], tokens: int, ends: Sequence[int], sampling: Sampling | None
    ) -> Mapping[str, Any]:
        """The inputs that say how tokens are drawn. Raises InputError as generate does."""
        check_room(len(prompt), tokens, self.context)
        check_text(prompt, ends, self.words)
        if not self.drawn:
            if sampling is not None:
                raise InputError("sampling is given, and the decoder does not draw (drawn=True)")
            return {}
        sampling = sampling or Sampling()
        sampling.check(self.words)
        return sampling.inputs(self.words, self._bounds)


def check_room(prompt: int, tokens: int, context: int) -> None:
    """Raise InputError unless a cache has room for a prompt and the tokens that follow.

    Args:
        prompt, tokens: the numbers of tokens of the prompt, and behind it.
        context: how many tokens the cache holds.
    """
    if prompt < 1:
        raise InputError("the prompt has no tokens; need one or more")
    if tokens < 1:
        raise InputError(f"{tokens} tokens to generate; need 1 or more")
    if prompt > context:
        raise InputError(
            f"a prompt of {prompt:,} tokens, and the cache holds {context:,}; need a shorter "
            "prompt or a larger cache (--context)"
        )
    # The last token is not put into the cache.
    most = context - prompt + 1
    if tokens > most:
        raise InputError(
            f"{tokens:,} tokens behind a prompt of {prompt:,}; the cache holds {context:,}, which "
            f"is enough for {most:,}; need fewer tokens or a larger cache (--context)"
        )


def check_text(prompt: Sequence[int], ends: Collection[int], words: int) -> None:
    """Raise TextError for tokens that the vocabulary does not have, and for too many ends.

    Args:
        ends: tokens that end the text.
        words: of the vocabulary.
    """
    for what, ids in (("the prompt has", prompt), ("the text ends with", ends)):
        wrong = [each for each in ids if not 0 <= index(each) < words]
        if wrong:
            raise TextError(f"{what} token {wrong[0]}; the vocabulary has 0..{words - 1:,}")
    if len(set(ends)) > MOST_ENDS:
        raise TextError(f"{len(set(ends))} tokens that end the text; need at most {MOST_ENDS}")


def _number(module: ModuleOp, attribute: str) -> int | None:
    """A number that is an attribute of a module; None if it has none."""
    given = module.attributes.get(attribute)
    return given.value.data if isinstance(given, IntegerAttr) else None
