"""The kinds of hostile inputs. A new kind needs a function and an entry in KINDS.

The functions take a random generator and make the same input from the same seed on every host. A
function is imported when its kind is first used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from zlib import crc32

import numpy as np
from typer.core import TyperGroup

from ....ir.support.errors import InputError
from .case import Case, Damaged
from .models import model_case
from .programs import MODULE


@dataclass(frozen=True)
class Kind:
    """A kind of hostile inputs.

    Attributes:
        home: `module:function`, in this folder.
        summary: the damage in words, for reports.
        model: the file name of the model that the function makes, if the function returns Damaged;
            the model goes to a command that reads models. Otherwise the function returns a Case.
        level: the function's second argument, if it damages programs of several levels.
        reads: whether a front end reads its models, which can then be tried without a command.
        asks_commands: whether its second argument is the group of all commands.
    """

    home: str
    summary: str
    model: str = ""
    level: str = ""
    reads: bool = False
    asks_commands: bool = False

    def make(self, random: np.random.Generator, commands: TyperGroup) -> Case:
        """The next input of this kind."""
        module, name = self.home.split(":")
        function: Callable[..., Case | Damaged] = getattr(
            import_module(f".{module}", __package__), name
        )
        further = [commands] if self.asks_commands else [self.level] if self.level else []
        made = function(random, *further)
        return (
            made if isinstance(made, Case) else model_case(self.model, made, random, is_source=True)
        )


SOURCES = ("stablehlo", "linalg")
"""The dialects above nn whose programs are damaged."""

LEVELS = ("nn", "partition", "tile", "exchange")
"""The levels whose programs are damaged."""

KINDS: dict[str, Kind] = {
    "onnx": Kind(
        "onnx_models:onnx_model",
        "ONNX models, damaged in their structure",
        "model.onnx",
        reads=True,
    ),
    "onnx-metadata": Kind("metadata:hostile_metadata", "ONNX models with hostile properties"),
    "pt2": Kind(
        "exported:exported_program", "archives of torch.export, .pt2", "model.pt2", reads=True
    ),
    **{
        f"{source}{suffix}": Kind(
            f"mlir_programs:{home}", f"programs of {source}, {how}", MODULE, source, reads=True
        )
        for source in SOURCES
        for suffix, home, how in (
            ("-text", "source_text", "damaged by tokens"),
            ("-edits", "source_edits", "edited"),
            ("-traps", "source_trap", "written to do harm"),
        )
    },
    "stablehlo-bytecode": Kind(
        "bytecode:bytecode", "bytecode of StableHLO, .mlirbc", "model.mlirbc", reads=True
    ),
    **{
        name: Kind(home, what, reads=True)
        for name, home, what in (
            ("caffe", "frameworks:caffe_network", "networks and solvers of Caffe, .prototxt"),
            ("caffe-traps", "framework_traps:caffe_trap", "the same, written to do harm"),
            ("caffe-weights", "frameworks:caffe_weights", "weights of Caffe, .caffemodel"),
            ("mxnet", "frameworks:mxnet_graph", "graphs of MXNet, -symbol.json"),
            ("mxnet-traps", "framework_traps:mxnet_trap", "the same, written to do harm"),
            ("mxnet-weights", "frameworks:mxnet_weights", "weights of MXNet, .params"),
        )
    },
    **{
        f"{level}-text": Kind(
            "text:damaged_text", f"text of {level}, damaged by tokens", level=level, reads=True
        )
        for level in LEVELS
    },
    **{
        f"{level}-edits": Kind(
            "edits:edited_program", f"programs of {level}, edited", level=level, reads=True
        )
        for level in LEVELS
    },
    "archives": Kind("archives:archive", "program files, .abele"),
    "blobs": Kind("blobs:blobs", "arrays beside a text, .npy"),
    "inputs": Kind("arrays:damaged_inputs", "inputs, damaged .npz"),
    "wrong-inputs": Kind("arrays:wrong_inputs", "inputs of wrong shapes, dtypes and names"),
    "weights": Kind("weights:weights", "files of weights, .safetensors"),
    "rules": Kind("rules:rules", "rules, .rw"),
    "targets": Kind("targets:targets", "targets, .toml"),
    "constraints": Kind("constraints:constraints", "constraints for the planner, .json"),
    "options": Kind("options:options", "command lines", asks_commands=True),
}
"""The kinds by name."""


def kinds(names: tuple[str, ...], reads_only: bool = False) -> dict[str, Kind]:
    """The kinds with these names; all of them if there are none. Raises InputError.

    Args:
        reads_only: whether no command runs, so that there must be a front end.
    """
    able = [name for name, each in KINDS.items() if each.reads or not reads_only]
    for name in names:
        if name not in able:
            of = " with --read-only" if reads_only else ""
            raise InputError(f"--kind {name}: need one of {', '.join(able)}{of}")
    return {name: KINDS[name] for name in names or able}


def case_of(name: str, seed: int, number: int, commands: TyperGroup) -> Case:
    """Example `number` of a kind: the same input on every host."""
    random = np.random.default_rng([seed, number, crc32(name.encode())])
    return KINDS[name].make(random, commands)
