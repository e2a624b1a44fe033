"""The table of front ends: those of abele, and those of extensions."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from ...ir.support.deferred import deferred
from ...ir.support.errors import InputError
from ...ir.support.user_entries import add_entry
from .caffe.front_end import CAFFE
from .front_end import REFUSED, FrontEnd, Reading
from .mxnet.front_end import MXNET
from .onnx.front_end import ONNX
from .pt2.front_end import PT2
from .stablehlo.front_end import STABLEHLO

if TYPE_CHECKING:
    import onnx

    from .safetensors import ReadTensors
    from .stablehlo.in_memory import StableHloModel
    from .uses import Use

with deferred(__name__):
    from ...dialects.levels import has_dialects_of_users
    from ...dialects.mlir import has_mlir
    from ...dialects.onnx_level import has_onnx
    from ...ir.text import read_module
    from ...ir.upstream import ModuleOp
    from .mlir_programs import lead_to_nn
    from .onnx_models.writer import model_of
    from .stablehlo.forms import is_stablehlo


Model: TypeAlias = "str | os.PathLike[str] | onnx.ModelProto | StableHloModel"
"""Models that can be compiled: the path of a file of a front end, or a model in memory."""


def _read_text(model: str | os.PathLike[str], reading: Reading) -> ModuleOp:
    if _holds_stablehlo(model):
        return STABLEHLO.read(model, reading)
    module = read_module(model, reading.context)
    if has_onnx(module):
        proto = model_of(module, reading.place, inline=True)
        return ONNX.read(proto, reading)
    if has_mlir(module) and not has_dialects_of_users(module):
        lead_to_nn(module, reading)
    return module


def _holds_stablehlo(model: str | os.PathLike[str]) -> bool:
    """Whether a file that is called a text of MLIR is one of StableHLO, in any form."""
    try:
        return is_stablehlo(Path(model).read_bytes())
    except OSError:
        return False


def _uses_of_text(model: str | os.PathLike[str], reading: Reading) -> tuple[list[Use], str]:
    if not _holds_stablehlo(model):
        raise InputError(f"{reading.place}: a program of abele, which no importer reads")
    assert STABLEHLO.uses is not None
    return STABLEHLO.uses(model, reading)


TEXT = FrontEnd(
    "text", (".mlir",), _read_text, is_text=True, folds_weights=False, uses=_uses_of_text
)
"""The text of a program of any level, or of other dialects of MLIR, which are converted to nn."""

FRONT_ENDS = (ONNX, PT2, CAFFE, MXNET, STABLEHLO, TEXT)
"""Abele's own front ends, in the order in which messages list them."""

USERS_FRONT_ENDS: dict[str, FrontEnd] = {}
"""The front ends of extensions, by the suffix of their files."""


def register_front_end(front_end: FrontEnd, owner: str, reserved: Collection[str]) -> None:
    """Register a user's front end.

    Raises InputError for a suffix that is taken.

    Args:
        reserved: suffixes that stand for something else.
    """
    taken = {*reserved, *(suffix for each in FRONT_ENDS for suffix in each.suffixes)}
    for suffix in front_end.suffixes:
        if not suffix.startswith(".") or len(suffix) < 2:
            raise InputError(
                f"{owner}: front end {front_end.name}: suffix {suffix!r}; need one such as '.graph'"
            )
        add_entry(USERS_FRONT_ENDS, "front end of", suffix, front_end, owner, taken)


def front_ends() -> Iterator[FrontEnd]:
    """Every front end once."""
    yield from FRONT_ENDS
    yield from {id(each): each for each in USERS_FRONT_ENDS.values()}.values()


def weight_files() -> dict[str, ReadTensors]:
    """What reads the files of weights of front ends, by the suffix of their names."""
    return {suffix: read for each in front_ends() for suffix, read in each.tensors.items()}


def suffixes(among: Iterable[FrontEnd] | None = None) -> tuple[str, ...]:
    """How the names of models end.

    Args:
        among: the front ends that count; None for all.
    """
    return tuple(s for each in (front_ends() if among is None else among) for s in each.suffixes)


def front_end_at(path: str) -> FrontEnd | None:
    """The front end for the file at a path, by its name; None if there is none."""
    fitting = [(len(s), each) for each in front_ends() for s in each.suffixes if path.endswith(s)]
    return max(fitting, key=lambda found: found[0])[1] if fitting else None


def front_end_of(model: object) -> FrontEnd | None:
    """The front end for a path or a model in memory; None if there is none."""
    if isinstance(model, str | os.PathLike):
        return front_end_at(os.fspath(model))
    return next((f for f in front_ends() if f.takes is not None and f.takes(model)), None)


def listed(words: Iterable[str]) -> str:
    """Words in a sentence: "a, b or c"."""
    *rest, last = words
    return f"{', '.join(rest)} or {last}" if rest else last


def refuse_options(front_end: FrontEnd, reading: Reading) -> None:
    """Raise InputError for what is given and the front end does not understand."""
    for name, message in REFUSED.items():
        value: Any = getattr(reading, name)
        if name in front_end.understands or value is None or value == {}:
            continue
        able = listed(suffixes(each for each in front_ends() if name in each.understands))
        is_by_name = isinstance(value, dict)
        text = message.format(
            given=", ".join(cast("Mapping[str, Any]", value)) if is_by_name else value,
            suffix=front_end.suffixes[0],
            kinds=f"an {able} model",
        )
        raise InputError(f"{reading.place}: {text}")
