"""The process that proves kernels, so that a crash of a kernel does not harm the process that asks.

The asking process writes a line for each task: its name, and the machine code of the task and of
the tasks that it needs. This process answers with a line for each group of cases as it begins, and
a last line.
"""

from __future__ import annotations

import base64
import json
import os
import sys

from ..load import use_alone
from ..threads import THREADS
from .answers import BEGUN, PROVED, UNDECIDED
from .batteries import proved


def main() -> None:
    """Answer until there are no more lines."""
    # Other output must not mix with the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def tell(*line: object) -> None:
        print(json.dumps(line), file=answers, flush=True)

    THREADS.count = 1
    for line in sys.stdin:
        task, codes = json.loads(line)
        tell(BEGUN, "loading")
        use_alone({name: base64.b64decode(code) for name, code in codes.items()})
        try:
            proof = proved(task, lambda name: tell(BEGUN, name))
        except MemoryError:
            tell(UNDECIDED, "there is too little memory")
        else:
            tell(PROVED, proof.cases, proof.seconds, proof.problem)
