"""What conversions from nn to dialects of other compilers share.

An operator of nn is an iteration space and a body. So a conversion needs few cases: it reads the
operands as the space says (reads.py), computes scalar functions (functions.py), and merges points
(merging.py, and several.py for combiners of several values). operators.py puts these together for
one operator (operator.py). program.py has functions, states and constants. export.py runs a
conversion. Each dialect says how to pad, cut and take, and how to run loops (loops.py).
"""
