"""Damaged rule files (.rw), and rules that are too large or too expensive."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from ....ir.text import print_module
from .case import Case, Damaged
from .programs import MODULE, any_program
from .text import damage_text

RULES = "rules.rw"

HOME = Path(__file__).resolve().parent.parent.parent.parent / "passes" / "rules"

GUARDS = (
    '"\\q" == "a"',
    "9" * 5000 + " > 1",
    "1 / 0 == 1",
    "2 * " * 3000 + "1 > 0",
    "(" * 2000 + "1" + ")" * 2000 + " > 0",
    "rank(x) == rank(y)",
    "rank(rank(x)) == 1",
    "4611686018427387904 * 4611686018427387904 > 0",
    "counted(1000000000) == counted(1000000000)",
    "counted(-1) == p",
    "same_type(x)",
    "same_shape(x, x, x)",
    "no_such_function(x)",
    "[1, 2, 3][10] == 1",
    "1.5e400 > 0",
    "not " * 1000 + "true",
)
"""Guards that cannot be evaluated, or only at a high cost."""

TEMPLATES = (
    "rule r: nn.neg(x) => x where GUARD\n",
    "rule r: nn.NAME(x) => nn.NAME(nn.NAME(x))\n",
    "rule r: nn.neg(x) => nn.neg(x)\n",
    "rule r: nn.add(x, y) => nn.add(y, x)\n",
    "rule r: x => x\n",
    "rule r: nn.neg(x) => y\n",
    "rule r: nn.neg(x) => \n",
    "rule NAME: nn.neg(nn.neg(x)) => x\nrule NAME: nn.neg(x) => x\n",
    "rule r: DEEP => x where GUARD\n",
    "@commutative rule r: nn.add(nn.add(a, b), nn.add(c, d)) => a\n",
    "@commutative rule r: TREE => a\n",
    "@priority(99999999999999999999) rule r: nn.neg(x) => x\n",
    "@priority(-1) rule r: nn.neg(x) => x\n",
    "@nothing rule r: nn.neg(x) => x\n",
    "lower nn.relu(x) => x\n",
    "rule r: nn.no_such(x) => x\n",
    "rule r: nn.matmul(x, y) => nn.matmul(x)\n",
    "rule r: nn.relu(x) {bogus = 1} => x\n",
    "rule r: nn.reshape(x) {shape = s} => nn.reshape(x) {shape = HUGE}\n",
    "rule r: nn.relu(x) => nn.reshape(x) {shape = [-1, 0, 3]}\n",
    "rule r: nn.tanh(x) => nn.relu(x) where GUARD or GUARD and not GUARD\n",
)
"""Rules with holes: GUARD, NAME, DEEP, TREE and HUGE."""

NAMES = ("neg", "tanh", "r" * 70_000, "été", "[/b]", "1", "rule")


def rules(random: np.random.Generator) -> Case:
    """A damaged rule file, which a command loads with --load."""
    files = any_program("nn", random)
    edit = int(random.integers(3))
    if edit == 0:
        made = _template(random)
    else:
        texts = _shipped()
        made = damage_text(texts[int(random.integers(len(texts)))], random)
    target = () if files.target is None else ("--target", files.target)
    name = "r" if edit == 0 else "reshape_of_reshape"
    commands = (
        ("run", MODULE, "--load", RULES, "--check", *target),
        ("opt", MODULE, "--load", RULES, "-p", "rules"),
        ("opt", MODULE, "--load", RULES, "-p", "nn"),
        ("explain", name, MODULE, "--load", RULES),
    )
    return Case(
        made.description,
        commands[int(random.integers(len(commands)))],
        {MODULE: print_module(files.program.module).encode(), **files.blobs, RULES: made.data},
        damaged=RULES,
    )


@lru_cache(maxsize=1)
def _shipped() -> tuple[str, ...]:
    """The text of abele's own rules, cut into pieces at blank lines."""
    texts = [path.read_text() for path in sorted(HOME.glob("*.rw"))]
    pieces = [piece for text in texts for piece in text.split("\n\n") if "rule " in piece]
    return tuple(pieces)


def _template(random: np.random.Generator) -> Damaged:
    template = TEMPLATES[int(random.integers(len(TEMPLATES)))]
    deep = "nn.neg(" * 300 + "x" + ")" * 300
    holes = {
        "GUARD": GUARDS[int(random.integers(len(GUARDS)))],
        "NAME": NAMES[int(random.integers(len(NAMES)))],
        "DEEP": deep if random.random() < 0.2 else "nn.neg(nn.neg(x))",
        "TREE": _tree(int(random.integers(2, 6))),
        "HUGE": "[4611686018427387904, 4611686018427387904]",
    }
    for hole, text in holes.items():
        template = template.replace(hole, text)
    return Damaged(template.encode(), f"rule {template[:60]!a}")


def _tree(depth: int) -> str:
    """A pattern of nested sums. The first leaf is a variable; all others match anything."""
    inner = "_"
    for _ in range(depth - 1):
        inner = f"nn.add({inner}, {inner})"
    return f"nn.add(a, {inner})"
