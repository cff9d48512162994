"""The operations ``checksum_audits`` and ``audit_checksums``: who verified a table's rows, and when."""

from typing import Any

from delta_core.api import Snapshot, Transaction
from delta_row_checksum.logic import AUDIT

__all__ = ["audit_checksums", "checksum_audits"]


def checksum_audits(source: Any) -> list[dict[str, Any]]:
    """Return the latest audit of each auditor, by auditor.

    Parameters
    ----------
    source : Snapshot, or anything with ``snapshot()``
    """
    snapshot = _snapshot(source)
    return sorted(snapshot.custom_actions(AUDIT.name), key=lambda audit: str(audit["auditor"]))


def audit_checksums(source: Any, auditor: str) -> dict[str, Any]:
    """Read and so verify every row, and leave word of it in the log.

    Raises DataFileError for a row that does not have its checksum; then nothing is committed.
    """
    snapshot = _snapshot(source)
    rows = sum(batch.num_rows for batch in snapshot.scan().to_reader())
    audit = {"auditor": auditor, "version": snapshot.version, "rows": rows}
    transaction = Transaction(snapshot.context, snapshot, "AUDIT CHECKSUMS", {"auditor": auditor})
    transaction.add_action(AUDIT.name, audit)
    transaction.commit()
    return audit


def _snapshot(source: Any) -> Snapshot:
    found: Snapshot = source.snapshot() if callable(getattr(source, "snapshot", None)) else source
    return found
