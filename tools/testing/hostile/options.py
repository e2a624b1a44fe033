"""Absurd command lines: hostile values for every option of every command, unknown options."""

from __future__ import annotations

from typing import Any

import numpy as np
from typer.core import TyperGroup

from .archives import ARCHIVE, program_archive
from .case import Case
from .programs import MODULE, any_program

VALUES = (
    *("", " ", "-", "--", "-1", "0", "1", "2", "1e400", "nan", "inf", "-inf", "1e-320", "0x10"),
    *("9" * 5000, "a" * 70_000, "2147483648", "9223372036854775808", "0.5", "1/0", "1/2", "1_0"),
    *("\udcff", "x\udcfe.npz", "\n", "[/b]", "[red]", "é", "\u202e", "{{DATA}}", "%s", "$HOME"),
    *("/", ".", "..", "/dev/null", "/proc/self/mem", "no/such/file", "model.mlir", "old.npz"),
    *("x=1", "x=", "=1", "x=1=2", "x=-1", "batch=99999999999", "a,b", ",", ",,,", "*", "**"),
    *("nn", "exchange", "nn,nn", "a{b=", "decompose{x=1}", "nn,", "xdsl-cse", "abele-nn", "nn{}"),
    *("mk2:0", "mk2:-1", "mk2:99999999", "tiny:1", "tiny:8,workers=0", "tiny:8,=", "tiny:"),
    *("tiny:8,clock_hz=nan", "tiny:8,memory.bytes_per_tile=1", "tiny:1e3", "no such target"),
    *("8,8,8", "0,0,0", "1,2", "4611686018427387904,1,1", "-1,2,3", "f16", "f64"),
    *("out.npz", "out.json", "out.png", "out.mlir", "out.abele", "folder", "folder/x.json"),
)
"""Values that an option may misinterpret. They leave nothing outside their folder."""

VALID: dict[str, tuple[str, ...]] = {
    "run": (MODULE,),
    "compile": (MODULE, "-o", "out.abele"),
    "train": (MODULE, "--data", "old.npz", "--steps", "1"),
    "opt": (MODULE,),
    "plan": (MODULE,),
    "memory": (MODULE,),
    "graph": (MODULE,),
    "bisect": (MODULE,),
    "explain": ("reshape_of_reshape", MODULE),
    "scan": (MODULE, "-o", "scan.png", "--size", "64"),
    "report": (MODULE, "-o", "folder"),
    # child.py gives the command a cache folder of its own.
    "cache": ("explain", MODULE),
    # These run for minutes, so they get two invalid arguments: an option before the first may take
    # it for its value.
    "bench": ("--target=no such target", "no such benchmark"),
    "mutate": ("--seed=0", "no-such-pass"),
    "fuzz": ("--seed=0", "no-such-pass"),
    "demo": ("--target", "no such target"),
    # It would compile kernels.
    "doctor": ("--json", "no such folder/health.json"),
}
"""Valid arguments of each command. Slow commands have some arguments that they refuse."""

LAST = ("bench", "mutate", "fuzz", "demo", "doctor")
"""Commands whose refused arguments come last, because the last value of an option counts."""

HARMFUL = (
    *("--open", "--hostile", "--interrupt", "--replay", "--jobs", "--advise"),
    "--mlir-print-ir-tree-dir",
)
"""Options that start browsers or processes, take minutes, or write to any named folder."""


def options(random: np.random.Generator, commands: TyperGroup) -> Case:
    """A command line with one to three hostile options or arguments."""
    names = [name for name in commands.commands if name in VALID]
    name = names[int(random.integers(len(names)))]
    command: Any = commands.commands[name]
    files = any_program("nn", random)
    valid = list(VALID[name])
    contents = {MODULE: files.text.encode(), **files.blobs, "old.npz": b"previous"}
    if random.random() < 0.15 and MODULE in valid:
        valid = [ARCHIVE if each == MODULE else each for each in valid]
        contents[ARCHIVE] = program_archive(int(random.integers(4)))
    words: list[str] = []
    for _ in range(int(random.integers(1, 4))):
        words += _hostile(command, random)
    if "tiny" not in " ".join(words) and "target" in {p.name for p in command.params}:
        words = ["--target", files.program.target.spelling(), *words]
    arguments = [*words, *valid] if name in LAST or random.random() < 0.5 else [*valid, *words]
    if random.random() < 0.03:
        name = ("rum", "", "-x", "\udcff", "[/b]")[int(random.integers(5))]
    return Case(f"{name}: {ascii(' '.join(words))[:200]}", (name, *arguments), contents)


def _hostile(command: Any, random: np.random.Generator) -> list[str]:
    """One or more command line words with a hostile option or argument for a command."""
    value = VALUES[int(random.integers(len(VALUES)))]
    choice = random.random()
    if choice < 0.08:
        return [value]
    if choice < 0.14:
        return [f"--{value}"]
    known = [
        parameter
        for parameter in command.params
        if parameter.opts[0].startswith("-") and not set(parameter.opts) & {*HARMFUL}
    ]
    if not known:
        return [value]
    parameter = known[int(random.integers(len(known)))]
    spelled = parameter.opts[int(random.integers(len(parameter.opts)))]
    if getattr(parameter, "is_flag", False):
        return [spelled]
    if choice < 0.2:
        return [spelled]
    if choice < 0.4 and spelled.startswith("--"):
        return [f"{spelled}={value}"]
    return [spelled, value]
