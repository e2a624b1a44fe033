"""The tasks of kernels. A task is a file of the folder `kernels`, which is loaded as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

NEEDS: Mapping[str, Sequence[str]] = {
    "sharing": (),
    "products": ("sharing",),
    "chains": ("sharing",),
    "functions": ("sharing", "chains"),
    "copies": ("sharing",),
    "routes": ("sharing",),
    "lookups": ("sharing",),
    "bounds": (),
    "equality": (),
}
"""All tasks, each with the tasks whose kernels it calls. These are proved first, and without them
the task cannot be used.
"""
