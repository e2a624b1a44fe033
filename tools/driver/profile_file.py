"""The file of a program's profile."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType

from .executable import Executable
from .files import write_text


def write_profile(
    path: Path, exe: Executable, lines: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Write the profile of a program as JSON, with the price of each operation.

    Raises InputError.

    Args:
        lines: what lines of the model's source say, by file and line, such as net.py:12.
    """
    operations = [asdict(each) for each in exe.operation_prices.values()]
    known = {each["line"]: lines[each["line"]] for each in operations if each["line"] in lines}
    whole = exe.profile | {"operations": operations, "lines": known}
    write_text(path, json.dumps(whole, indent=2) + "\n")
