"""What happens in a run of tiles, as both tile and exchange have it: the bases of their operations.

Both dialects have the same moves, computations and supersteps. At `tile`, passes still decide which
operations share a superstep and where variables lie; at `exchange`, that is decided. Each operation
of the two dialects is a name for one of the classes here, so what walks programs asks for these.
"""

from .copies import Copy
from .outside import Arrival, Departure, Input, Load, Output, Remote, Store
from .supersteps import IN_A_SUPERSTEP, OUTSIDE, SYNC_ZONES, Read, Superstep, Sync, zone_of
from .vertices import Vertices
from .written import FirstValue, first_values, written, written_by

__all__ = [
    "IN_A_SUPERSTEP",
    "OUTSIDE",
    "SYNC_ZONES",
    "Arrival",
    "Copy",
    "Departure",
    "FirstValue",
    "Input",
    "Load",
    "Output",
    "Read",
    "Remote",
    "Store",
    "Superstep",
    "Sync",
    "Vertices",
    "first_values",
    "written",
    "written_by",
    "zone_of",
]
