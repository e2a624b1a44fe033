"""The numbers that callers write into tables and kernels read from them.

Every kernel takes addresses and tables of int64. This module names the codes and the columns of
those tables, once for the code that writes them and for the kernels that read them. It needs no
numba.
"""

from __future__ import annotations

LANES = 16
"""Elements of a vector."""

# Copies

COPY_HEAD = 7
"""Columns of a copy's table before its dimensions: number of dimensions, bytes of the innermost
run, dimension of the first replica or -1, address of scratch for one block, addresses of the source
and the target, and how a run is copied. The sizes, the source's strides and the target's strides
follow, in bytes, and then an index per dimension, zero between calls.

With replicas, the dimensions before the first one enumerate blocks, then come the replicas, then
the runs of a block, which is contiguous in the target."""

RUNS, WORDS = 0, 16
"""How a run is copied if it is not one element: any number of bytes, or at most 16 words. Other
values are the bytes of one element."""

# Chains

CHAIN_VECTORS = 8
"""Vectors that a chain works on at a time: each decision is made once for all of them."""

TAKE, ADD, SUB, MUL, DIV, MAX, MIN, ROUND = range(8)
"""What a step does with the total and its operand. The total is the left operand, or the right one
if REVERSED is added."""

REVERSED = 8
SAVE, STORE = 15, 16
"""Steps that copy the total: to a place that SAVED reads, or to memory. Their COUNT is 0."""

APPLY = 17
"""A step that applies a function with its own sequence to the total, and perhaps its operand."""

SAVED_PLACES = 6
"""Totals that SAVE can keep at a time."""

NO_OPERAND, FLOATS, HALVES, FLOAT, HALF = range(5)
EVERY_SECOND_FLOAT, STRIDED_FLOATS, STRIDED_HALVES = range(5, 8)
CONSTANT, TOTAL, SAVED = range(8, 11)
"""What a step's operand is: contiguous floats or halves (float16), one value for all lanes, every
second float, or elements at a stride, all of them in memory; a constant, the total, or a total
that SAVE copied."""

OP, COUNT, PLACES, KIND, STRIDE, COLUMN = range(6)
FACTOR_PLACES, FACTOR_KIND, FACTOR_STRIDE, FACTOR_COLUMN = range(6, 10)
FUNCTION, FUNCTION_CODE = range(10, 12)
STEP_FIELDS = 12
"""Columns of a step: what it does, how many operands it merges one after another, the address of
their offsets, and for each operand its kind, the bytes from element to element, and the column of
the address table that it is relative to. The same follows for a factor, which the operand is
multiplied by. COLUMN holds the bits of a CONSTANT, and the place of SAVE and SAVED. A step of APPLY
has the number of a function, and the address of the code that computes it."""

SIZES, RANK, SPAN, STEPS, STEP_COUNT, STRIDES, STARTS, MEMORIES, RAMPS, ROOM = range(10)
STEPS_CODE, ALONG_CODE, ACROSS_CODE = range(10, 13)
CHAIN_FIELDS = 13
"""Columns of a chain's table: the address of the sizes of its dimensions, of which the last makes
the rows, and how many there are, at least two; elements of a row that are done before other rows
are; the address of the steps, and how many there are; the addresses of strides, by dimension and
memory, and of where each memory starts, and how many memories there are; the address of ramps: for
each memory, the offsets of the next rows along the last dimension but one, then those of the next
vectors along a row, CHAIN_VECTORS each; the address of room for an address table, for one address
per memory and for one index per dimension; the addresses of the code that does the steps, and of
the two loops over rows."""

ADDRESSES_BYTES = 8 * CHAIN_VECTORS
"""Bytes of the addresses of a step's vectors."""

ADDRESS_LINE_BYTES = 2 * ADDRESSES_BYTES
"""Bytes of one column of an address table. Only its first half is read: addresses are stored
CHAIN_VECTORS at a time, from anywhere in that half."""

# Routes

FILLED, BY_WORDS, BY_BYTES, GATHERED, REPLICA = 0, 1, 2, 3, 8
"""How the runs of a segment are made: filled with a constant, copied as at most 16 words, copied as
bytes, gathered in pieces of 1 << (kind - GATHERED) bytes, or copied from the first replica."""

RUN_TARGET, RUN_SOURCE, RUN_LENGTH, RUN_ROWS, RUN_ROW_TABLE, RUN_PIECES = range(6)
RUN_FIELDS = 6
"""Columns of a run: target offset, source offset, length, number of rows, the first entry of its
rows' offsets, and the first entry of its pieces' offsets."""

ROUTE_HEAD = 6
"""Columns of a route's head: addresses of the source and the target, bytes of an element, the bits
that fill, bytes from one row of a run to the next, and the address of the code that copies rows in
pieces."""

# Sums of products

PRODUCT_HEAD = 15
"""Columns of the head of a product's table: addresses of the left operand, the right operand and
the result; bytes of an element of each; columns of the result; addresses of packed rows, of packed
columns and of tiles of results; terms of one chain of additions; the addresses of the code that
multiplies, packs rows, packs columns and stores a tile."""

PACKED_ROWS, PACKED_COLUMNS = 7, 8
"""The columns of the head that hold the addresses of packed operands."""

RUN_LANE, RUN_COLUMNS, RUN_OFFSET, RUN_ENTRY, RUN_IS_CONTIGUOUS = range(5)
COLUMN_RUN_FIELDS = 5
"""Columns of a run of columns: its first column within the panel, how many columns, the offset of
the first, its first entry in the list of all offsets, and SCATTERED or CONTIGUOUS."""

SCATTERED, CONTIGUOUS = 0, 1
"""Whether the columns of a run have one offset each or are contiguous in memory."""

ROWS_KEPT, ROWS_PACKED, COLUMNS_KEPT, COLUMNS_PACKED = 1, 2, 4, 8
"""Flags: packed rows or columns stay packed after the call, or are packed already."""

# Lookups

LOOKUP_COLUMNS = 4
"""Columns of a lookup's table, which has a line per lookup: the offsets of its first piece in the
result and in a row of the table, the offset of its index, and the first row that its cell holds.
A second table has the further offsets of each piece of a row in the result and in the table.

Its head is: addresses of the result, of row 0 of the table and of the indices, bytes of an index,
negative if it has a sign, elements of the axis that indices are of, rows of a cell, bytes from a
row to the next, bytes of a piece, address of as many zeros."""
