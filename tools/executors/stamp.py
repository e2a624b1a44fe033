"""What must be equal in all processes that work together."""

from __future__ import annotations

import sys
from functools import cache

from ..driver.cache.key import abele_version, package_versions

FOLDERS = ("ir", "dialects", "backends", "passes", "tools")
"""The folders whose sources must be equal."""


@cache
def stamp() -> str:
    """The versions of abele, Python and the packages that abele computes with, in words.

    In a checkout, the version of abele is also the digest of its sources as they were when this
    process first asked.
    """
    python = "{}.{}.{}".format(*sys.version_info[:3])
    return f"abele {abele_version(FOLDERS)}; Python {python}; {package_versions()}"
