"""The codes and columns of the tables that callers write and kernels read.

Every kernel takes addresses and tables of int64. This module names the codes and the columns of
those tables, once for the code that writes them and for the kernels that read them. It needs no
numba.
"""

from __future__ import annotations

LANES = 16
"""Elements of a vector."""

# Units of work

LINE = 8
"""Numbers of int64 in a cache line of the host."""

JOB_NUMBER, JOB_IS_OPEN, JOB_ACTIVE, JOB_PARKED, JOB_STOPS = range(0, 5 * LINE, LINE)
JOB_CODE, JOB_TABLE, JOB_CUTS, JOB_THREADS, JOB_YIELD = range(5 * LINE, 5 * LINE + 5)
THREAD_LINES = 6
"""The table of a job, in its first THREAD_LINES lines: the number of jobs so far, whether the last
one is open, the number of threads in it, the number of parked threads, and whether all threads are
to stop; then the addresses of the kernel that does its units, of the kernel's table and of the
units' beginnings, the number of threads that take part, and the address of the system's function
that yields to other threads. As many lines follow for each thread.
"""

THREAD_NEXT, THREAD_IS_PARKED = 0, LINE
THREAD_END, THREAD_ROOM = 2 * LINE, 2 * LINE + 1
"""Columns of a thread's lines: the next unit of its stretch, whether it is parked, the end of its
stretch, and the address of its room for intermediate values."""

CALL_CODE, CALL_TABLE, CALL_FIRST, CALL_END = range(4)
"""A call of all units: the address of the kernel that does them, of the kernel's table, the first
part of the work, and the end."""

# Copies

COPY_RANK, COPY_RUN, COPY_REPLICA, COPY_CODE, COPY_SOURCE, COPY_TARGET, COPY_KIND = range(7)
COPY_HEAD = 7
"""Columns of a copy's table before its dimensions: number of dimensions, bytes of the innermost
run, dimension of the first replica or -1, address of the code that copies runs, addresses of the
source and the target, and how a run is copied. The sizes, the source's strides and the target's
strides follow, in bytes, and then an index per dimension, zero between calls.

With replicas, the dimensions before the first one enumerate blocks, then come the replicas, then
the runs of a block, which is contiguous in the target."""

RUNS, WORDS = 0, 16
"""How a run is copied if it is not one element: as any number of bytes, or as at most 16 words.
Other values are the bytes of one element.
"""

# Chains

CHAIN_VECTORS = 8
"""Vectors that a chain handles at a time: each decision is made once for all of them."""

TAKE, ADD, SUB, MUL, DIV, MAX, MIN, ROUND = range(8)
"""Operations of a step on the total and its operand. The total is the left operand, or the right
one if REVERSED is added.
"""

REVERSED = 8
SAVE, STORE = 15, 16
"""Steps that copy the total: to a place that SAVED reads, or to memory. Their COUNT is 0."""

APPLY = 17
"""A step that applies a function with its own sequence to the total, and perhaps its operand."""

SAVED_PLACES = 6
"""Totals that SAVE can keep at a time for later stages."""

FUNCTION_ROOMS = 2
"""Places behind those, for the operands of a function."""

WORD_PLACES = SAVED_PLACES + FUNCTION_ROOMS
COUNTER_WORDS = 4
"""The first of the places behind those, and their number: for the words from which random words are
computed. One more keeps the value to round."""

ALL_PLACES = WORD_PLACES + COUNTER_WORDS + 1

ROUNDED_TO = (11.0, -14.0, 65504.0)
"""The digits, the least exponent and the largest number of the type to which kernels round:
float16."""

BY_RULE = ("infinity", "clip", "nan")
"""What kernels make of too large numbers, by the number of the rule."""

NO_OPERAND, FLOATS, HALVES, FLOAT, HALF = range(5)
EVERY_SECOND_FLOAT, STRIDED_FLOATS, STRIDED_HALVES = range(5, 8)
CONSTANT, TOTAL, SAVED = range(8, 11)
"""Kinds of a step's operand. In memory: contiguous floats or halves (float16), one value for all
lanes, every second float, or elements at a stride. Elsewhere: a constant, the total, or a total
that SAVE copied.
"""

OP, COUNT, PLACES, KIND, STRIDE, COLUMN = range(6)
FACTOR_PLACES, FACTOR_KIND, FACTOR_STRIDE, FACTOR_COLUMN = range(6, 10)
FUNCTION, FUNCTION_CODE = range(10, 12)
STEP_FIELDS = 12
"""Columns of a step: its operation, the number of operands that it merges one after another, the
address of their offsets, and for each operand its kind, the bytes from element to element, and the
column of the address table that it is relative to. The same follows for a factor, by which the
operand is multiplied. COLUMN holds the bits of a CONSTANT, and the place of SAVE and SAVED. A step
of APPLY has the number of a function, and the address of the code that computes it.
"""

SIZES, RANK, SPAN, STEPS, STEP_COUNT, STRIDES, STARTS, MEMORIES, RAMPS, CUTS_COLUMNS = range(10)
STEPS_CODE, ALONG_CODE, ACROSS_CODE = range(10, 13)
CHAIN_FIELDS = 13
"""Columns of a chain's table: the address of the sizes of its dimensions, of which the last gives
the rows, and their number, at least two; elements of a row that are handled before other rows; the
address of the steps, and their number; the addresses of strides, by dimension and memory, and of
where each memory starts, and the number of memories; the address of ramps: for each memory, the
offsets of the next rows along the second-to-last dimension, then those of the next vectors along a
row, CHAIN_VECTORS each; whether threads share the columns and not the rows; the addresses of the
code that runs the steps, and of the two loops over rows. A chain needs room for an address table,
for one address per memory, and for one index per dimension.
"""

MERGE_COLUMNS, MERGE_SPAN, MERGE_STEPS, MERGE_STEP_COUNT = range(4)
MERGE_TABLES, MERGE_TABLE_BYTES, MERGE_CODE = range(4, 7)
MERGE_FIELDS = 7
"""Columns of a merge's table: elements of a row, and of a span of it; the address of the steps, and
their number; the address of the address tables of groups of CHAIN_VECTORS rows, and the bytes of
one; the address of the code that runs the steps.
"""

ADDRESSES_BYTES = 8 * CHAIN_VECTORS
"""Bytes of the addresses of a step's vectors."""

ADDRESS_LINE_BYTES = 2 * ADDRESSES_BYTES
"""Bytes of one column of an address table. Only its first half is read: addresses are stored
CHAIN_VECTORS at a time, from anywhere in that half."""

# Routes

FILLED, BY_WORDS, BY_BYTES, GATHERED, TRANSPOSED, REPLICA = 0, 1, 2, 3, 8, 10
"""Kinds of the runs of a segment: filled with a constant, copied as at most 16 words, copied as
bytes, gathered in pieces of 1 << (kind - GATHERED) bytes, transposed in pieces of 4 << (kind -
TRANSPOSED) bytes, or copied from the first replica.
"""

LEAST_SIDE = 4
"""The least number of rows of a transposed run, and of pieces of each row."""

RUN_TARGET, RUN_SOURCE, RUN_LENGTH, RUN_ROWS, RUN_ROW_TABLE, RUN_PIECES = range(6)
RUN_FIELDS = 6
"""Columns of a run: target offset, source offset, length, number of rows, the first entry of its
rows' offsets, and the first entry of its pieces' offsets. The rows of a transposed run are
consecutive in the source, and the offsets are those in the target.
"""

ROUTE_SOURCE, ROUTE_TARGET, ROUTE_UNIT, ROUTE_FILL, ROUTE_STEP, ROUTE_CODE = range(6)
SEGMENTS, RUNS_OF_ROUTE, ROUTE_ROWS, ROUTE_PIECES, SEGMENT_COUNT = range(6, 11)
ROUTE_FIELDS = 11
"""Columns of a route's table: addresses of the source and the target, bytes of an element, the bits
of the fill value, bytes from one row of a run to the next, and the address of the code that copies
rows in pieces; the addresses of segments and runs, of offsets of rows in the source, and of offsets
of the pieces of gathered runs; and the number of segments.
"""

# Sums of products

LEFT, RIGHT, RESULT, LEFT_BYTES, RIGHT_BYTES, RESULT_BYTES, PACKED_ROWS, PACKED_COLUMNS = range(8)
CHAIN_TERMS, MULTIPLY_CODE, PACK_ROWS_CODE, PACK_COLUMNS_CODE, STORE_TILE_CODE = range(8, 13)
BATCH, GROUPS, BLOCK_COUNT, BLOCK_PANELS, KNOWN = range(13, 18)
ROW_COUNT, ROW_OFFSETS, RESULT_ROWS, COLUMN_COUNT, PANEL_COUNT = range(18, 23)
RUNS_OF_COLUMNS, SPANS, COLUMN_OFFSETS = range(23, 26)
RESULT_RUNS, RESULT_SPANS, RESULT_COLUMNS = range(26, 29)
TERM_COUNT, LEFT_TERMS, RIGHT_TERMS, ROUNDING = range(29, 33)
PRODUCT_FIELDS = 33
"""Columns of a product's table.

Addresses of the left operand, the right operand and the result, and bytes of an element of each;
addresses of packed rows and columns, if they are kept; the number of terms of one chain of
additions; the addresses of the code that multiplies, packs rows, packs columns and stores a tile.
The address of the batch: for each product, the offsets of both operands and the result; the address
of the groups: the first product and the end of each group, whose products are added up in one
result; the number of blocks of rows of a product, and of panels of a block; flags, see ROWS_KEPT.

The number of rows, and the addresses of their offsets in the operand and in the result; the number
of columns, and of their panels; the addresses of the runs of columns of the second operand, of the
first run of each panel with the end, and of the offsets of columns; the same of the result. The
number of terms, and the addresses of their offsets in both operands. How a sum is rounded after
each chain, one of ROUNDINGS.
"""

ROUNDINGS = {"INFINITY": 1, "CLIP": 2, "NAN": 3}
"""The roundings of a sum to float16, by the number that replaces one that is too large; 0 is
none."""

RUN_LANE, RUN_COLUMNS, RUN_OFFSET, RUN_ENTRY, RUN_IS_CONTIGUOUS = range(5)
COLUMN_RUN_FIELDS = 5
"""Columns of a run of columns: its first column in the panel, the number of columns, the offset of
the first, its first entry in the list of all offsets, and SCATTERED or CONTIGUOUS.
"""

SCATTERED, CONTIGUOUS = 0, 1
"""Whether the columns of a run have one offset each or are contiguous in memory."""

ROWS_KEPT, ROWS_PACKED, COLUMNS_KEPT, COLUMNS_PACKED = 1, 2, 4, 8
"""Flags: packed rows or columns stay packed after the call, or are already packed."""

# Lookups

POINT_RESULT, POINT_ROW, POINT_INDEX, POINT_FIRST_ROW = range(4)
LOOKUP_COLUMNS = 4
"""Columns of a lookup's table, which has a line per lookup: the offsets of its first piece in the
result and in a row of the table, the offset of its index, and the first row that its cell holds.
A second table has the further offsets of each piece of a row in the result and in the table."""

INTO, ROW_0, INDICES, INDEX_BYTES, AXIS_SIZE, ROWS_OF_CELL, ROW_STEP, PIECE_BYTES, ZEROS = range(9)
LISTED_POINTS, LISTED_POINT_COUNT, LISTED_PIECES, LISTED_PIECE_COUNT = range(9, 13)
LOOKUP_FIELDS = 13
"""Columns of a lookup's head: addresses of the result, of row 0 of the table and of the indices,
bytes of an index, negative if it is signed, elements of the axis of the indices, rows of a cell,
bytes from a row to the next, bytes of a piece, and the address of as many zeros; the address
of the table of lookups, and their number; the same of pieces.
"""

# Bounds

VALUES, SIZES_OF_TERMS, ERRORS, ACTUAL, ACTUAL_BYTES = range(5)
NUMBERS_OF_BOUND, STAGES, STAGE_COUNT, BOUND_STEPS, FURTHER, FURTHER_COUNT = range(5, 11)
MERGED_BY, IS_DOUBLE, ROUNDS_ONCE, HAS_SEVERAL, NEVER_BELOW = range(11, 16)
STEP_CODE, FETCH_CODE, BEGIN_BOUNDS_CODE, BEGIN_LEAST_CODE, ENDS_CODE = range(16, 21)
MARK_CODE, LOOK_CODE, END_STAGE_CODE, READ_ACTUAL_CODE, COMPARE_CODE = range(21, 26)
STAGE_CODE = 26
BOUND_FIELDS = 27
"""Columns of a bound's table: the addresses of values, of the sizes and errors of the merged
values, and of the actual results, and bytes of an actual result; the addresses of numbers, of
stages, of the steps of their functions, and of further operands, with the numbers of stages and of
operands; how values were merged; whether the result is float64 before its stages; whether only
exact values are rounded to it once more; whether a value is merged from several; and whether the
signs of terms show that a sum of them is not negative; then the addresses of the code of each task
of a block.
"""

SUMMED, MULTIPLIED, SELECTED = range(3)
"""How values were merged."""

ROUNDOFF, TINY, GROWTH, LOST, LARGEST_SUM, LOST_PER_SIZE, TINY_IN_ALL = range(7)
RESULT_ROUNDOFF, RESULT_SUBNORMAL, RESULT_NORMAL, RESULT_LARGEST = range(7, 11)
BOUND_FACTOR, OWN_FACTOR, STAGE_FACTOR, ACTUAL_LARGEST = range(11, 15)
BOUND_NUMBERS = 15
"""Columns of a bound's numbers, all of float64: the unit roundoff of the computing dtype, its
underflow error, the growth of errors by merging, the underflow error of the accumulator, and its
largest number; the errors that underflows add per size of a product, and to a sum in all; the unit
roundoff, the smallest subnormal, the smallest normal and the largest number of the result before
its stages; factors of the whole bound, of a stage's own error and of its whole error; and the
largest number of the actual results.
"""

STAGE_OPERANDS, STAGE_STEPS, STAGE_STEPS_END, STAGE_ULPS = 0, 2, 3, 4
STAGE_POLES, STAGE_POSITIVE = 5, 6
STAGE_FIELDS = 7
"""Columns of a stage: its two operands, the first step of its function and the end, the bits of the
error of that function in units of roundoff, and, as bits, the operands that have a pole at 0 and
those that must be positive. An operand is the number of an earlier value, or FURTHER_OPERAND minus
the number of a further operand; NO_VALUE if there is none.
"""

FURTHER_OPERAND, NO_VALUE = -1, 1 << 20

BOUND_STEP_OP, BOUND_STEP_BY, BOUND_STEP_CONSTANT = range(3)
BOUND_STEP_FIELDS = 3
"""Columns of a step: its operation, the code of its other operand, and the bits of a constant
operand.
"""

BY_CONSTANT, BY_OPERAND, BY_ITSELF = range(3)
"""Codes of the other operand of a step."""

MORE_ADDRESS, MORE_REPEATS, MORE_COUNT = range(3)
MORE_FIELDS = 3
"""Columns of a further operand: the address of its elements, the number of neighbouring results
that share an element, and the number of elements after which it repeats.
"""

# Equal bytes

EQUAL_LEFT, EQUAL_RIGHT, EQUAL_UNIT, EQUAL_RANK = range(4)
EQUAL_FIELDS = 4
"""Columns of a comparison's head: the addresses of both arrays, bytes of an element, and the number
of axes. The sizes, the strides of both in bytes, and an index per axis follow."""
