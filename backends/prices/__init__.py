"""Prices: cycles of operators, copies, supersteps and programs; bytes of code and stacks.

`codelets` prices the vertices of any structured operator with the loops that `cost` reads from the
codelets' records, and matrix products with `contractions`. `price` prices programs. The codelets
know no price.
"""
