"""Names that are used once, such as those of symbols."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class UnusedNames:
    """Hands out names that are not used yet.

    Attributes:
        taken: the names in use, including those handed out.
    """

    taken: set[str] = field(default_factory=set[str])
    _clashes: Counter[str] = field(default_factory=Counter[str])

    def unused(self, base: str) -> str:
        """The name, or the name with a number after a point if it is taken. The result is taken
        from now on.
        """
        name = base
        while name in self.taken:
            self._clashes[base] += 1
            name = f"{base}.{self._clashes[base]}"
        self.taken.add(name)
        return name
