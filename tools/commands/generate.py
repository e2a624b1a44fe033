"""abele generate."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from ...ir.support.deferred import deferred
from ...ir.support.errors import InputError
from ..driver.files import PROGRAM_FILE, check_files
from ..driver.request import OPTIONS, Request
from ..views.terminal import console
from ..views.user_errors import print_error_line, text_in, user_errors
from .arguments import ModelFile
from .compiling import Compilation, compiles_with
from .threads import ThreadCount, use_threads

with deferred(__name__):
    from ..driver.decoding.asked import BOUNDS
    from ..driver.decoding.decoder import Decoder, Sampling, check_room, check_text
    from ..views.token_costs import costs_table, speed

FIELDS = (
    *("target", "chips", "dim", "value", "keep", "passes", "precision", "rounding", "sparsity"),
    *("partials", "load", "constraints", "memory_proportion", "vertices_per_tile", "weights"),
    *("partial_weights", "lenient", "no_cache", "verbose"),
)

MOST_IDS = 1_000_000
"""The most letters of a prompt."""

AT_ONCE = 64
"""The most tokens of a prompt that a run reads, unless another number is given."""

LEAST = 8
"""The smallest number of tokens that a program is compiled for, unless another one is given."""


def read_ids(text: str) -> list[int]:
    """Token ids from a text such as 1,2,3. Raises InputError."""
    parts = text.split(",") if text.strip() else []
    if len(text) > MOST_IDS or not all(p.strip().isascii() and p.strip().isdigit() for p in parts):
        raise InputError(
            f"--prompt-ids {text[:40]}{'...' * (len(text) > 40)}: need whole numbers, such as 1,2,3"
        )
    if any(len(each.strip()) > 9 for each in parts):
        raise InputError(f"--prompt-ids {text[:40]}: need tokens below 10^9")
    return [int(each) for each in parts]


def rounded(count: int) -> int:
    """The next power of two, so that prompts of nearly the same length share a program."""
    return max(LEAST, 1 << (count - 1).bit_length())


@compiles_with(*FIELDS)
def generate_command(
    model: ModelFile,
    *,
    how: Compilation,
    prompt_ids: Annotated[
        str, typer.Option(metavar="1,2,3", help="The tokens of the prompt, joined by commas.")
    ],
    tokens: Annotated[int, typer.Option(min=1, help="The most tokens to generate.")] = 16,
    end: Annotated[
        list[int] | None,
        typer.Option(metavar="ID", help="A token that ends the text. May be repeated."),
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Draw tokens, by their scores divided by this number. With 0, and without this "
            "option and the next ones, the token with the highest score follows.",
        ),
    ] = None,
    top_k: Annotated[
        int | None,
        typer.Option(min=0, help="Draw one of so many tokens with the highest scores; 0 for all."),
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(
            help="Draw one of the fewest tokens with the highest scores whose chances together "
            "reach this share."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Draw tokens, with this seed. The same seed draws the same."),
    ] = None,
    context: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="How many tokens the cache holds. Default: a power of two with room for the "
            "prompt and --tokens.",
        ),
    ] = None,
    at_once: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="The most tokens of the prompt that one run of the device reads. Default: a power "
            f"of two with room for the prompt, at most {AT_ONCE}.",
        ),
    ] = None,
    per_run: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="The most tokens that one run of the device generates.",
        ),
    ] = 16,
    threads: ThreadCount = None,
) -> None:
    """Generate tokens with a decoder of a language model that has its cache as inputs and
    outputs."""
    with user_errors(text_in(model), model) as caught:
        use_threads(threads)
        if model.endswith(PROGRAM_FILE):
            raise InputError(f"{model}: compiled already; need the model of a decoder")
        extensions = caught.load(how.load)
        check_files({"the model": Path(model), **how.files}, {})
        prompt = read_ids(prompt_ids)
        drawing = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
        asked = {name: value for name, value in drawing.items() if value is not None}
        is_drawn = bool(asked) and temperature != 0
        if len(asked) > 1 and not is_drawn:
            raise InputError(
                "--temperature 0 draws no tokens; need a number above 0 for --top-k, --top-p and "
                "--seed"
            )
        sampling = Sampling(**cast("dict[str, Any]", asked)) if is_drawn else None
        room = context or rounded(len(prompt) + tokens - 1)
        check_room(len(prompt), tokens, room)

        def check(words: int) -> None:
            check_text(prompt, end or (), words)
            if sampling is not None:
                sampling.check(words)

        text = _Text()
        with text.told_early(), how.progress(extensions) as on_step:
            decoder = Decoder.compiled(
                model,
                prompt=at_once or min(AT_ONCE, rounded(max(1, len(prompt)))),
                context=room,
                tokens=per_run,
                drawn=is_drawn,
                bounds=[name for name in BOUNDS if asked.get(name)],
                check=check,
                **_options(how.request(model, extensions, on_step)),
            )
            text.stage = f"it read the prompt ({len(prompt):,} long)"
            found = decoder.generate(prompt, tokens, ends=end or (), sampling=sampling)
            on_step(f"generate (1 of {tokens})")
            for token in found:
                text.made.append(token)
                text.stage = f"it generated {tokens:,} tokens"
                on_step(f"generate ({len(text.made) + 1} of {tokens})")
            text.stage = "it counted the cycles of a token"
            on_step("figures")
            table = costs_table(decoder)
        text.show()
        console().print(table)
        typer.echo(speed(decoder))


@dataclass
class _Text:
    """The tokens so far, for a command that may end early.

    Attributes:
        stage: what the command does with them, in words; "" before it reads the prompt.
    """

    stage: str = ""
    made: list[int] = field(default_factory=list[int])

    def show(self) -> None:
        """Print the tokens."""
        typer.echo(",".join(map(str, self.made)))

    @contextmanager
    def told_early(self) -> Generator[None]:
        """A block that prints what there is if Ctrl-C, a signal, a limit or an error ends it."""
        try:
            yield
        except BrokenPipeError:
            raise
        except BaseException:
            if self.stage:
                if self.made:
                    self.show()
                number = len(self.made)
                so_far = f"{number:,} token{'s' * (number != 1)}" if number else "no token"
                print_error_line(f"stopped while {self.stage}: {so_far} so far")
            raise


def _options(request: Request) -> dict[str, Any]:
    """The options of a request for the programs of a session."""
    return {name: getattr(request, name) for name in OPTIONS.keys() - {"model", "runs", "beside"}}
