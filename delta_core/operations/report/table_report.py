"""The report of a table, as text, as a page and as plain values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from delta_core.operations.report.facts import ReportFacts
from delta_core.operations.report.pages import report_body, report_page

__all__ = ["TableReport"]


class TableReport(ReportFacts, frozen=True):
    """How a table is: ``str()`` is its health in ten lines, `to_html` one page, notebooks show it.

    Examples
    --------
    >>> table.report().files
    2
    >>> table.report().state
    'good'
    """

    def __repr__(self) -> str:
        return f"TableReport({self.uri!r}, version={self.version}, {self.state})"

    def __str__(self) -> str:
        width = max((len(c.name) for c in self.checks), default=0)
        marks = {"good": "ok  ", "attention": "LOOK", "bad": "BAD "}
        lines = [f"{self.uri}: {self.format} version {self.version}, {self.state}"]
        lines += [f"{marks[c.state]}  {c.name:<{width}}  {c.found} {c.advice}".rstrip() for c in self.checks]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values, for JSON.

        Examples
        --------
        >>> table.report().to_dict()["state"]
        'good'
        """
        return {**json.loads(json.dumps(asdict(self), default=_plain)), "state": self.state}

    def to_html(self) -> str:
        """Return the report as one page that needs nothing else, light or dark as the reader's system is.

        Examples
        --------
        >>> table.report().to_html()[:15]
        '<!doctype html>'
        """
        return report_page(self)

    def _repr_html_(self) -> str:
        return report_body(self)

    def save(self, path: str | Path) -> None:
        """Write the page of `to_html` to a local file.

        Parameters
        ----------
        path : str or Path
            The file; one that is there is replaced.

        Examples
        --------
        >>> from pathlib import Path
        >>> report = table.report()
        >>> report.save("report.html")
        >>> Path("report.html").read_text(encoding="utf-8") == report.to_html()
        True
        """
        Path(path).write_text(self.to_html(), encoding="utf-8")


def _plain(value: Any) -> Any:
    return asdict(value) if isinstance(value, Struct) else str(value)
