from time import sleep

from some_passes import Append, Nothing
from xdsl.dialects.builtin import ModuleOp

from abele.ir.context import AbeleContext
from abele.ir.instruments.timing import Timing
from abele.ir.pass_manager import Instrument, PassManager
from abele.ir.step import RunningPass


class Slow(Instrument):
    def after(self, step: RunningPass, module: ModuleOp) -> None:
        sleep(0.05)


def test_each_pass_is_timed_and_counted():
    timing = Timing()
    PassManager((Append(3), Nothing()), (timing,)).run(AbeleContext(), ModuleOp([]))
    counts = [(t.name, t.operations_before, t.operations_after) for t in timing.passes]
    assert counts == [("append", 1, 4), ("nothing", 4, 4)]
    assert all(each.seconds >= 0 for each in timing.passes)
    assert timing.seconds == sum(each.seconds for each in timing.passes)


def test_the_last_instrument_does_not_time_the_others():
    timing = Timing()
    PassManager((Nothing(),), (Slow(), timing)).run(AbeleContext(), ModuleOp([]))
    assert timing.seconds < 0.05


def test_the_table_has_one_line_per_pass_and_a_total():
    timing = Timing()
    assert timing.table().split()[0] == "all"
    PassManager((Append(3), Nothing()), (timing,)).run(AbeleContext(), ModuleOp([]))
    first, second, last = timing.table().splitlines()
    assert first.startswith("append ")
    assert first.endswith("1 -> 4 operations")
    assert second.startswith("nothing ")
    assert last.startswith("all ")
