"""What the process that proves kernels answers."""

BEGUN, PROVED, UNDECIDED, ENDED = "begun", "proved", "undecided", "ended"
"""What a line begins with: the name of a group that begins follows; or what the battery has found,
as the fields of a proof after its task; or why it has found nothing. After the last line, the
process has ended."""
