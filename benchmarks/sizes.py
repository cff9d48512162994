"""How large the tables of the cases are."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Sizes"]


@dataclass(frozen=True)
class Sizes:
    """How large the tables are; ``scale`` 1 is what the published figures use."""

    scale: float = 1.0

    def of(self, count: int, least: int = 1) -> int:
        """Return a count at this scale."""
        return max(least, int(count * self.scale))
