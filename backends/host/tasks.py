"""The tasks of kernels: what one file of the folder `kernels` is for, and is loaded as one."""

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
"""All tasks, each with those that call its kernels. These are proved before it, and without them it
is of no use."""
