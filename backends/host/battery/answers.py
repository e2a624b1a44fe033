"""The lines with which the process that proves kernels answers."""

BEGUN, PROVED, UNDECIDED, ENDED = "begun", "proved", "undecided", "ended"
"""The first word of a line. `begun`: the name of the group that begins follows. `proved`: the
fields of the proof after its task follow. `undecided`: the reason why there is no result follows.
`ended`: the process has ended.
"""
