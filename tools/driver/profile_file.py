"""The file of a program's profile."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from .executable import Executable
from .files import write_text


def write_profile(path: Path, exe: Executable) -> None:
    """Write the profile of a program as JSON, with the price of each operation.

    Raises InputError.
    """
    operations = [asdict(each) for each in exe.operation_prices.values()]
    write_text(path, json.dumps(exe.profile | {"operations": operations}, indent=2) + "\n")
