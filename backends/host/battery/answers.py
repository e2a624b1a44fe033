"""What the process that proves kernels answers."""

BEGUN, PROVED, ENDED = "begun", "proved", "ended"
"""What a line begins with: the name of a group that begins follows; or what the battery has found,
as the fields of a proof after its task. After the last line, the process has ended."""
