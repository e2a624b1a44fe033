"""The three passes of the chapter about exchange orders, on texts and on random layouts."""

from dataclasses import dataclass
from pathlib import Path
from runpy import run_path
from typing import Any

import hypothesis.strategies as st
import numpy as np
from documents import TITLE, blocks_of
from hypothesis import given

from abele.backends.machine import Machine
from abele.backends.target import resolve_target
from abele.dialects.levels import EXCHANGE, TILE
from abele.ir.text import parse_module, print_module
from abele.ir.upstream import ModuleOp
from abele.ir.verify import verify
from abele.passes.allocate import Allocate
from abele.passes.convert_tile_to_exchange import ConvertTileToExchange
from abele.passes.group_supersteps import GroupSupersteps
from abele.passes.schedule_supersteps import ScheduleSupersteps

from .strategies import context

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "exchange_orders.py"
CHAPTER = ROOT / "docs" / "tutorial" / "12-write-an-exchange-order.md"
PASSES = run_path(str(EXAMPLE))

LOWER = (ScheduleSupersteps(), Allocate(), GroupSupersteps(), ConvertTileToExchange())


def test_the_chapter_shows_the_passes_of_the_example():
    titles = {
        found[1]: block.text for block in blocks_of(CHAPTER) if (found := TITLE.match(block.text))
    }
    assert titles["exchange_orders.py"] == EXAMPLE.read_text(encoding="utf-8")


@dataclass(frozen=True)
class Turned:
    """Rows of a tensor that become columns, by so many tiles."""

    rows: int
    columns: int
    rest: int
    tiles: int

    def module(self) -> ModuleOp:
        """A program of tile that turns them."""
        shape = f"[{self.rows}, {self.columns}, {self.rest}]"
        tensor = f"tensor<{self.rows}x{self.columns}x{self.rest}xf32>"
        sizes = [str(n) for n in (self.rows, self.columns, self.rest)]
        return parse_module(
            f"""builtin.module attributes {{abele.target = "tiny:{self.tiles}"}} {{
              tile.variable @x : {tensor} layout <{self._cut(0, sizes)} of {shape}>
              tile.variable @y : {tensor} layout <{self._cut(1, sizes)} of {shape}>
              func.func @main() {{
                tile.input "x" -> @x : {tensor}
                tile.copy [@x] -> @y
                tile.output @y -> "y" : {tensor}
                func.return
              }}
            }}""",
            context(),
        )

    def _cut(self, axis: int, sizes: list[str]) -> str:
        # In canonical form, the dimension that is cut comes first.
        order = [axis, *(i for i in range(3) if i != axis and sizes[i] != "1")]
        grid = [f"{sizes[i]} by {self.tiles}" if i == axis else sizes[i] for i in order]
        axes = [f"d{order.index(i)}" if i in order else "0" for i in range(3)]
        return f"[{', '.join(grid)}] ({', '.join(axes)})"

    def turned_by(self, module: ModuleOp) -> np.ndarray:
        """What a program of exchange makes of the numbers in order."""
        x = np.arange(self.rows * self.columns * self.rest, dtype=np.float32)
        machine = Machine(module, resolve_target(f"tiny:{self.tiles}"), strict=True)
        return machine.run({"x": x.reshape(self.rows, self.columns, self.rest)})["y"].ravel() - x


def applied(module: ModuleOp, *passes: Any) -> ModuleOp:
    made = context()
    for each in passes:
        each.apply(made, module)
    return module


def moves_of(module: ModuleOp) -> list[str]:
    lines = print_module(module, locations=False).splitlines()
    return [line.strip() for line in lines if "exchange.move" in line or "tile.copy" in line]


ROWS = Turned(4, 6, 2, 4)


def test_receiver_first_orders_by_the_parts_that_the_destination_has_several_of():
    ordered = applied(ROWS.module(), *LOWER, PASSES["ReceiverFirst"]())
    assert moves_of(ordered) == ["exchange.move [@x] -> @y order <(d0)>"]
    verify(ordered, EXCHANGE)
    assert not ROWS.turned_by(ordered).any()


def test_split_messages_keeps_shorter_chunks():
    split = applied(ROWS.module(), *LOWER, PASSES["SplitMessages"](2), PASSES["SplitMessages"](3))
    assert moves_of(split) == ["exchange.move [@x] -> @y chunk 2"]
    assert not ROWS.turned_by(split).any()


def test_two_hops_go_over_a_grid_of_tiles():
    hops = applied(ROWS.module(), PASSES["TwoHops"]())
    verify(hops, TILE)
    assert [line.partition(" moves")[0] for line in moves_of(hops)] == [
        'tile.copy [@x] -> @"y/between"',
        'tile.copy [@"y/between"] -> @"y/turned"',
        'tile.copy [@"y/turned"] -> @y',
    ]


def test_what_is_not_turned_goes_directly():
    prime = Turned(5, 5, 1, 5)
    assert moves_of(applied(prime.module(), PASSES["TwoHops"]())) == ["tile.copy [@x] -> @y"]


@given(
    st.builds(
        Turned, st.integers(4, 9), st.integers(4, 9), st.integers(1, 3), st.sampled_from((4,))
    )
)
def test_two_hops_bring_the_same_bytes(turned: Turned):
    hops = applied(turned.module(), PASSES["TwoHops"](), *LOWER)
    assert len(moves_of(hops)) == 3
    assert not turned.turned_by(hops).any()
