"""The tables of a report: the name, type and meaning of every column."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import wrap

from ....ir.support.file_format import FileFormat

REPORT = FileFormat("abele report", 1, "write the report again")
"""The name and version of the format in report.json. The version grows when a column changes its
meaning or goes.
"""


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        kind: text, int, float or bool.
        meaning: a sentence for people.
    """

    name: str
    kind: str
    meaning: str


@dataclass(frozen=True)
class TableSchema:
    """A table.

    Attributes:
        meaning: of one row.
    """

    name: str
    meaning: str
    columns: tuple[Column, ...]


def _table(name: str, meaning: str, *columns: tuple[str, str, str]) -> TableSchema:
    return TableSchema(name, meaning, tuple(Column(*each) for each in columns))


_CYCLES = (
    ("cycles", "int", "Cycles of a run's critical path that are its own, sync included."),
    ("compute_cycles", "int", "Those in which the busiest tile of each superstep computes."),
    ("exchange_cycles", "int", "Those in which that tile exchanges."),
    ("sync_cycles", "int", "Those until all tiles have met."),
)

SCHEMA: tuple[TableSchema, ...] = (
    _table(
        "operations",
        "One operation of the framework, or several that were fused. Cycles of all operations add "
        "up to those of the program.",
        ("operation", "int", "The number of the operation, in program order."),
        ("name", "text", "What people call it: the framework's node, or the name of its weights."),
        ("nodes", "text", "The framework's nodes, joined by +."),
        ("layer", "text", "The name without its last part: what operations are grouped by."),
        ("kind", "text", "What it computes, such as nn.conv."),
        ("phase", "text", "forward, backward or update; empty if the program has no phases."),
        ("line", "text", "FILE:LINE:COLUMN where it is written, or FILE:LINE; empty if not known."),
        ("shape", "text", "The shape and type of its result; empty if that is not known."),
        ("attributes", "text", "Its attributes, such as strides; empty if it has none."),
        ("first_superstep", "int", "The first superstep that it runs in; -1 if it runs in none."),
        ("supersteps", "int", "Supersteps that it runs in."),
        *_CYCLES,
        ("exchange_bytes", "int", "Bytes of a run that tiles receive for it."),
        ("vertices", "int", "Vertices of its compute sets."),
        ("macs", "int", "Multiplications and additions of a run."),
        ("utilisation", "float", "The share of the peak of all tiles in its cycles; null if none."),
        ("peak", "text", "What is compared with the peak: MACs, vector or exchange."),
        ("resident_bytes", "int", "Bytes of its weights and constants on all tiles together."),
        ("value_bytes", "int", "Bytes of its results and temporaries on all tiles together."),
        ("peak_bytes", "int", "Its bytes on the fullest tile in that tile's worst superstep."),
        ("plan", "text", "The plan of its dearest operator."),
        ("split", "text", "The parts of each dimension that the plan splits."),
        ("method", "text", "How the plan computes products."),
        ("partials", "text", "The type of partial sums of products; empty if none or not known."),
        ("runner_up", "text", "The best plan with another split."),
        ("runner_up_slower", "float", "How much slower that is: 0.1 is 10 %; null if none."),
        ("limited_by", "text", "What keeps it from being faster."),
    ),
    _table(
        "plans",
        "The plan of one operator of nn, as the planner estimates it.",
        ("operation", "int", "The operation it belongs to."),
        ("node", "text", "The nodes that the operator was made from."),
        ("kind", "text", "The operator, such as nn.conv."),
        ("space", "text", "The sizes of its dimensions."),
        ("plan", "text", "The plan."),
        ("split", "text", "The parts of each dimension that is split."),
        ("partials", "text", "The type of partial sums of products; empty if none or not known."),
        ("tiles", "int", "Tiles that it uses."),
        ("times", "int", "Executions in a run."),
        ("estimated_cycles", "float", "Cycles of an execution."),
        ("compute_cycles", "float", "Those of compute."),
        ("exchange_cycles", "float", "Those of exchange."),
        ("sync_cycles", "float", "Those of sync."),
        ("combine_cycles", "float", "Those in which partials are combined."),
        ("macs", "int", "Multiplications and additions of an execution."),
        ("utilisation", "float", "The share of the peak of all tiles."),
        ("peak", "text", "What is compared with the peak."),
        ("temporary_bytes", "int", "Bytes of copies, partials and result on the fullest tile."),
        ("resident_bytes", "int", "Bytes of weights and constants on the fullest tile."),
        ("limit_bytes", "int", "What temporary_bytes may be."),
        ("runner_up", "text", "The best plan with another split."),
        ("runner_up_cycles", "float", "Its cycles; null if there is none."),
        ("limited_by", "text", "What keeps it from being faster."),
    ),
    _table(
        "alternatives",
        "A plan of an operation's dearest operator that the planner has priced.",
        ("operation", "int", "The operation."),
        ("plan", "text", "The plan."),
        ("split", "text", "The parts of each dimension that is split."),
        ("cycles", "float", "Cycles of an execution, as the planner estimates them."),
        ("temporary_bytes", "int", "Bytes of copies, partials and result on the fullest tile."),
        ("resident_bytes", "int", "Bytes of weights and constants on the fullest tile."),
        ("tiles", "int", "Tiles that it uses."),
        ("chosen", "bool", "Whether it is the plan of the program."),
        ("pareto", "bool", "Whether no other plan here has both fewer cycles and fewer bytes."),
    ),
    _table(
        "sparse_products",
        "A product with a known matrix, priced with its zeros and without, as abele plan shows it.",
        ("node", "text", "The name of the product."),
        ("matrix", "text", "The sizes of the matrix, rows by columns."),
        ("block", "text", "The blocks of the cheapest sparse product; empty if none was priced."),
        ("held", "float", "The share of these blocks that are not 0; of elements, without blocks."),
        ("dense", "float", "Cycles with zeros, alone; null if they were not asked for."),
        ("sparse", "float", "Cycles of the cheapest sparse product; null if none was priced."),
        ("verdict", "text", "Whether zeros are left out, and why not."),
    ),
    _table(
        "parts",
        "One copy or compute set of the program.",
        ("part", "int", "The number of the part, in the order of the program's text."),
        ("operation", "int", "The operation it belongs to."),
        ("superstep", "int", "The superstep it runs in."),
        ("kind", "text", "copy or compute."),
        ("origin", "text", "The nodes and the step of their lowering."),
        ("line", "text", "FILE:LINE of the model's source; empty if not known."),
        ("codelet", "text", "What its vertices compute; empty for a copy."),
        ("writes", "text", "The variable that it fills."),
        ("times", "int", "Executions in a run."),
        ("first_tile", "int", "The first tile that it uses."),
        ("tiles", "int", "Tiles that it uses, in `ranges` ranges of equal length."),
        ("ranges", "int", "Ranges of tiles: 1 if they follow each other; else one on each chip."),
        ("apart", "int", "Tiles from the first of a range to that of the next; 0 if there is one."),
        ("vertices", "int", "Vertices; 0 for a copy."),
        ("compute_cycles", "int", "Of an execution, on the tile that it keeps busy longest."),
        ("exchange_cycles", "int", "The same, of exchange."),
        ("exchange_bytes", "int", "Bytes of an execution that tiles receive."),
        ("charged_compute", "int", "Its part of the superstep's compute, on the critical tile."),
        ("charged_exchange", "float", "Its part of the superstep's exchange, on that tile."),
        ("critical_compute", "float", "Its cycles of compute on the critical path of a run."),
        ("critical_exchange", "float", "Its cycles of exchange on the critical path of a run."),
    ),
    _table(
        "vertices",
        "Equal vertices of a part on one tile. Tiles of the same kind run the same ones.",
        ("part", "int", "The compute set."),
        ("kind", "int", "The kind of tile; `vertex_tiles` has the tiles of each."),
        ("worker", "int", "The worker that runs them; -1 if the supervisor runs them with all."),
        ("cycles", "int", "Of one vertex, as if all workers ran such vertices at the same time."),
        ("bytes", "int", "Bytes that one vertex writes."),
        ("vertices", "int", "How many there are on a tile."),
    ),
    _table(
        "vertex_tiles",
        "Neighbouring tiles that run the same vertices of a part.",
        ("part", "int", "The compute set."),
        ("kind", "int", "The kind of these tiles."),
        ("first_tile", "int", "The first tile."),
        ("tiles", "int", "Tiles from there on."),
    ),
    _table(
        "links",
        "A value that one operation makes and another one reads.",
        ("source", "int", "The operation that makes it."),
        ("destination", "int", "The operation that reads it."),
        ("variable", "int", "The variable that holds it."),
        ("bytes", "int", "Its bytes on all tiles."),
    ),
    _table(
        "supersteps",
        "One superstep of the program. Cycles are those of one execution.",
        ("superstep", "int", "The number, in the order of the program's text."),
        ("name", "text", "Its name."),
        ("operation", "int", "The operation that most of its cycles belong to; -1 if none."),
        ("origin", "text", "The nodes and the step of their lowering."),
        ("line", "text", "FILE:LINE of the model's source; empty if not known."),
        ("times", "int", "Executions in a run."),
        ("cycles", "int", "Cycles: sync, exchange and compute, on the chip that takes longest."),
        ("sync_cycles", "int", "Until all tiles have met."),
        ("exchange_cycles", "int", "In which the critical tile exchanges."),
        ("compute_cycles", "int", "In which the critical tile computes."),
        ("chips", "int", "Chips that do anything in it, or wait for others."),
        ("critical_cycles", "int", "Its cycles on the critical path of a run; they add up to it."),
        ("critical_sync", "int", "Those until tiles have met."),
        ("critical_exchange", "int", "Those of exchange."),
        ("critical_compute", "int", "Those of compute."),
        ("exchange_bytes", "int", "Bytes that tiles receive."),
        ("crossing_bytes", "int", "Bytes that move between chips; 0 on a machine with one."),
        ("critical_tile", "int", "The tile whose exchange and compute together take longest."),
        (
            "median_compute",
            "float",
            "Cycles that the median tile computes, of chips that take part.",
        ),
        (
            "balance",
            "float",
            "Mean compute of these tiles / the longest of any; 1 is best.",
        ),
        ("busy_tiles", "int", "Tiles that compute."),
        ("live_bytes", "int", "Live bytes on the tile that has most; -1 if it never runs."),
        ("live_mean", "float", "Live bytes on the mean tile; null if it never runs."),
    ),
    _table(
        "superstep_tiles",
        "What one tile does in one execution of a superstep.",
        ("superstep", "int", "The superstep."),
        ("tile", "int", "The tile."),
        ("compute_cycles", "int", "Cycles that it computes."),
        ("exchange_cycles", "int", "Cycles that it exchanges."),
        ("received_bytes", "int", "Bytes that it receives."),
        ("sent_bytes", "int", "Bytes that it sends."),
    ),
    _table(
        "chip_executions",
        "What one chip does in one execution of a superstep; none for a program of one chip.",
        ("execution", "int", "The row of executions."),
        ("chip", "int", "The chip."),
        ("arrives", "int", "The cycle in which it is done with everything before."),
        ("start", "int", "The cycle in which the chips that it waits for are, too."),
        ("end", "int", "The cycle in which it is done."),
        ("sync_cycles", "int", "Cycles until its tiles have met; 0 for what is skipped."),
        ("exchange_cycles", "int", "Cycles in which its slowest tile exchanges."),
        ("compute_cycles", "int", "Cycles in which that tile computes."),
    ),
    _table(
        "executions",
        "One execution of a superstep in a run, in order.",
        ("start", "int", "The cycle in which its first chip begins."),
        ("cycles", "int", "How long it takes, with `turns` executions for skipped iterations."),
        (
            "superstep",
            "int",
            "The superstep; -1 for iterations of a loop or a call that are skipped.",
        ),
        ("turns", "int", "Iterations that this row stands for; 1 for a single execution."),
    ),
    _table(
        "tiles",
        "The memory and the work of one tile.",
        ("tile", "int", "The tile."),
        ("always_live", "int", "Bytes of weights and constants, which live in every superstep."),
        ("live_now", "int", "Most bytes of other variables that live at once."),
        ("gaps", "int", "Bytes below the highest variable that are free at that moment."),
        ("code", "int", "Bytes of codelets and control code, by the target's rules."),
        ("vertex_state", "int", "Bytes of pointers and counts of vertices."),
        ("exchange_code", "int", "Bytes of instructions that send and receive."),
        ("stacks", "int", "Bytes of the stacks of workers and supervisor."),
        ("reserved_unused", "int", "Bytes that are reserved for these four and that none takes."),
        ("variable_bytes", "int", "Bytes up to the end of the highest variable."),
        ("worst_superstep", "int", "The position of its worst moment in `moments`; -1 if none."),
        ("compute_cycles", "int", "Cycles of a run that it computes."),
        ("exchange_cycles", "int", "Cycles of a run that it exchanges."),
    ),
    _table(
        "variables",
        "One variable: a tensor that lies on tiles.",
        ("variable", "int", "The number of the variable."),
        ("name", "text", "Its name in the program."),
        ("operation", "int", "The operation it was made for; -1 if that is not known."),
        ("origin", "text", "The nodes and the step of their lowering."),
        ("kind", "text", "state, constant or value. The first two are always live."),
        ("dtype", "text", "The type of its elements."),
        ("shape", "text", "Its shape, such as 1x64x56x56."),
        ("first_tile", "int", "The first tile that it lies on."),
        ("tiles", "int", "Tiles that it lies on, in `ranges` ranges of equal length."),
        ("ranges", "int", "Ranges of tiles: 1 if they follow each other; else one on each chip."),
        ("apart", "int", "Tiles from the first of a range to that of the next; 0 if there is one."),
        ("address", "int", "Its address on each of these tiles."),
        ("bytes_per_tile", "int", "Bytes on each of these tiles."),
        ("bytes", "int", "Bytes on all tiles."),
        ("at_peak", "bool", "Whether it is live on the fullest tile in its worst superstep."),
        ("waits", "bool", "Whether it is live there, and neither read nor written."),
    ),
    _table(
        "lives",
        "One life of a variable that is not always live.",
        ("variable", "int", "The variable."),
        ("first", "int", "The first moment in which it is live."),
        ("last", "int", "The last moment in which it is live."),
    ),
    _table(
        "moments",
        "One superstep in the order of execution: a loop's body once, a function once per call.",
        ("moment", "int", "The position."),
        ("superstep", "int", "The superstep."),
        ("tile", "int", "The tile with most live bytes."),
        ("max_bytes", "int", "Those bytes, with what is always live."),
        ("mean_bytes", "float", "Live bytes on the mean tile."),
        ("min_bytes", "int", "Live bytes on the tile that has fewest."),
        ("peak_tile_bytes", "int", "Live bytes on the program's fullest tile."),
    ),
    _table(
        "layout",
        "The part of a variable on the fullest tile: where it lies and when it lives.",
        ("variable", "int", "The variable."),
        ("address", "int", "Its address."),
        ("bytes", "int", "Its bytes on this tile."),
        ("first", "int", "The first moment."),
        ("last", "int", "The last moment."),
    ),
    _table(
        "exchanges",
        "Bytes of one execution of a superstep from one group of tiles to another.",
        ("superstep", "int", "The superstep."),
        ("source", "int", "The group that sends."),
        ("destination", "int", "The group that receives."),
        ("bytes", "int", "Bytes that the tiles of the group receive, without those of the tile."),
        ("exact", "bool", "False if the tiles of a very large copy were taken to share evenly."),
    ),
    _table(
        "timetables",
        "The exchange of a superstep, by the timetable of its messages.",
        ("superstep", "int", "The superstep."),
        ("messages", "int", "Messages between tiles; -1 if no timetable was made."),
        ("bound", "int", "What the busiest lane or supervisor takes; -1 as for messages."),
        ("cycles", "int", "Those until the last message has arrived; -1 as for messages."),
        ("times_bound", "float", "cycles / bound; null if no timetable was made."),
        ("why", "text", "What the last message waits for; empty if nothing is exchanged."),
        ("code_most", "int", "Bytes of the instructions that exchange, on the tile with the most."),
        ("code_mean", "float", "The mean of those tiles that have any; 0 if none has."),
        ("code_tiles", "int", "How many have any."),
    ),
    _table(
        "chips",
        "One chip of the machine.",
        ("chip", "int", "The chip."),
        ("first_tile", "int", "Its first tile."),
        ("tiles", "int", "Tiles from there on."),
        ("tiles_used", "int", "Those that hold variables."),
        ("fullest_tile", "int", "The one whose variables reach highest."),
        ("max_tile_bytes", "int", "How high they reach, with what the target reserves."),
        ("always_live", "int", "Bytes of weights and constants on all its tiles."),
        ("live_now", "int", "Most bytes of other variables on each of its tiles, added up."),
        ("stashes", "int", "Bytes that stages of a pipeline keep on it for backward stages."),
        ("compute_cycles", "int", "Cycles of a run in which its busiest tile computes."),
        ("exchange_cycles", "int", "Cycles of a run in which that tile exchanges."),
        ("sync_cycles", "int", "Cycles of a run until its tiles have met, once all are there."),
        ("waiting_cycles", "int", "The others: it waits for other chips, or is done before them."),
        ("end", "int", "The cycle in which it is done."),
        ("sent_bytes", "int", "Bytes of a run that it sends to other chips."),
        ("received_bytes", "int", "Bytes of a run that it receives from other chips."),
    ),
    _table(
        "chip_links",
        "A link between chips, in one direction. Links that no pair of chips uses are left out.",
        ("link", "int", "The number of the link."),
        ("name", "text", "What it joins: FROM -> TO, of chips, machines or a switch."),
        ("bytes_per_second", "float", "Bytes that it carries in a second."),
        ("bytes", "int", "Bytes that it carries in a run."),
        ("busy_cycles", "int", "Cycles that it takes to carry them."),
        ("share", "float", "The same as a share of the cycles of a run."),
    ),
    _table(
        "crossings",
        "Two chips, of which one sends to the other.",
        ("source", "int", "The chip that sends."),
        ("destination", "int", "The chip that receives."),
        ("bytes", "int", "Bytes of a run. A word for several tiles of a chip counts once."),
    ),
    _table(
        "placements",
        "An operation on one chip; no rows on a machine with one chip.",
        ("operation", "int", "The operation."),
        ("chip", "int", "The chip."),
        ("tile_cycles", "int", "Cycles of a run that tiles of the chip compute for it, added up."),
        ("resident_bytes", "int", "Bytes of its weights and constants on the chip."),
    ),
    _table(
        "tree",
        "A node of the control program.",
        ("node", "int", "The number of the node, in the order of the tree."),
        ("parent", "int", "The node around it; -1 for the entry."),
        ("depth", "int", "Nodes around it."),
        ("kind", "text", "function, call, repeat, while, if, superstep or part."),
        ("name", "text", "The name of what it runs."),
        ("operation", "int", "The operation that it belongs to; -1 if several or none."),
        ("superstep", "int", "The superstep that it is, or is a part of; -1 if none."),
        ("times", "int", "Executions in a run."),
        ("inclusive_cycles", "int", "Cycles on a run's critical path, with everything in it."),
        ("exclusive_cycles", "int", "Those of them that nothing in it accounts for."),
    ),
    _table(
        "passes",
        "One run of a pass.",
        ("pass", "int", "The position in the pipeline."),
        ("name", "text", "The pass."),
        ("level", "text", "The level that it works towards."),
        ("seconds", "float", "Wall-clock seconds."),
        ("operations_before", "int", "Operations in the program before it."),
        ("operations_after", "int", "Operations after it."),
    ),
    _table(
        "provenance",
        "What became of one node of the framework.",
        ("node", "text", "The node."),
        ("operation", "int", "The operation that accounts for it; -1 if nothing of it is left."),
        ("line", "text", "Where it is written; empty if that is not known."),
        ("nn", "int", "Operations of nn that came from it; -1 if this level is not there."),
        ("partition", "int", "The same of partition."),
        ("tile", "int", "The same of tile."),
        ("exchange", "int", "The same of exchange."),
    ),
)

TABLES = {each.name: each for each in SCHEMA}


def markdown() -> Iterator[str]:
    """The lines of the section of docs/report.md that lists all tables."""
    for table in SCHEMA:
        yield from (f"### {table.name}", "", *wrap(table.meaning, 100), "")
        yield from ("| column | type | meaning |", "|---|---|---|")
        yield from (f"| `{c.name}` | {c.kind} | {c.meaning} |" for c in table.columns)
        yield ""
