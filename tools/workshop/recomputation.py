"""Compare automatic recomputation with PopART's schedule.

For each network, a step of training is compiled as it is, with `--recompute sqrt`, and with
`--recompute auto:BYTES`, where BYTES is what the schedule takes. The table has bytes of the fullest
tile, cycles, and the number of choices:

    python -m abele.tools.workshop.recomputation alexnet:16 resnet50:1 --target mk2
"""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.table import Table

from ...ir.support.errors import InputError
from ...passes.train import Train
from ..bench.measure import write_network
from ..driver.compile import compile_model
from ..driver.executable import Executable
from ..views.terminal import console


def main() -> None:
    """Print the table."""
    parser = ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("networks", nargs="+", metavar="NAME:BATCH", help="a light network or file")
    parser.add_argument("--target", default="mk2")
    given = parser.parse_args()
    table = Table()
    for name in ("network", "recomputes", "fullest tile", "cycles", "choices"):
        table.add_column(name, justify="left" if name in ("network", "recomputes") else "right")
    with TemporaryDirectory() as folder:
        for each in given.networks:
            name, _, batch = each.rpartition(":")
            path = Path(name)
            if not path.exists():
                path = Path(folder, f"{name}.onnx")
                write_network(name, path)
            _compare(table, path, int(batch), given.target)
    console().print(table)


def _compare(table: Table, path: Path, batch: int, target: str) -> None:
    def row(how: str) -> Executable:
        exe = _compiled(path, batch, target, how)
        size, cycles = exe.memory.max_tile_bytes, int(exe.profile["cycles"])
        row = f"{path.stem}, batch {batch}", how or "nothing", f"{size:,}", f"{cycles:,}"
        table.add_row(*row, str(len(exe.recomputed)) if "auto" in how else "")
        console().print(*row, highlight=False)
        return exe

    row("")
    try:
        row(f"auto:{row('sqrt').memory.max_tile_bytes}")
    except InputError as error:
        console().print(str(error), highlight=False)


def _compiled(path: Path, batch: int, target: str, recompute: str) -> Executable:
    """A step of training, even if it does not fit."""
    return compile_model(
        path,
        target,
        batch=batch if path.suffix == ".onnx" else None,
        train=Train() if path.suffix == ".onnx" else None,
        recompute=recompute,
        unbounded=True,
        cache=False,
    )


if __name__ == "__main__":
    main()
