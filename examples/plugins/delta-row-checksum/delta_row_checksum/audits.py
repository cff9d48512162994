"""The verb ``checksum_audits``: who verified a table's rows, and when."""

from typing import Any

from delta_row_checksum.logic import AUDIT

__all__ = ["checksum_audits"]


def checksum_audits(source: Any) -> list[dict[str, Any]]:
    """Return the latest audit of each auditor, by auditor.

    Parameters
    ----------
    source : Snapshot, or anything with ``snapshot()``
    """
    snapshot = source.snapshot() if callable(getattr(source, "snapshot", None)) else source
    return sorted(snapshot.others(AUDIT.name), key=lambda audit: str(audit["auditor"]))
