"""python -m abele.tools.testing FOLDER: run a saved failure again.

Exits 1 if it still fails, 0 if it does not, 2 if the folder cannot be read.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ...ir.errors import InputError
from .generators.program import Program
from .onnx_graphs.checks import replayed as replayed_model
from .onnx_graphs.graph import MODEL
from .search.failures import AtFault
from .search.replay import replayed


def main(arguments: list[str]) -> int:
    """Replay the program or model of one folder. Returns the exit status."""
    if len(arguments) != 1:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    folder = Path(arguments[0])
    try:
        if (folder / MODEL).exists():
            return _replay_model(folder)
        program, record = Program.load(folder)
        wrong = replayed(program, record)
    except InputError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    except AtFault as error:
        sys.stdout.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{program.text}\n{wrong.text if wrong else 'nothing is wrong any more'}\n")
    return 1 if wrong else 0


def _replay_model(folder: Path) -> int:
    graph, wrong = replayed_model(folder)
    sys.stdout.write(f"{graph.text}\n{wrong.text if wrong else 'nothing is wrong any more'}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
