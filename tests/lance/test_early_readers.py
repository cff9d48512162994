"""Earlier versions of pylance read what is written here: rows, filters, counts, rows by id, and compaction.

``DELTA_CORE_PYLANCE`` names the interpreters of environments that have them, separated by colons; each is tried.
Without it, the installed one reads datasets that all operations changed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_plugins.lance import open_dataset, write_lance
from tests.lance.changed_datasets import SCHEMA, rows
from tests.lance.made_arrays import CASES, MISSING, made_array

READERS = [p for p in os.environ.get("DELTA_CORE_PYLANCE", "").split(os.pathsep) if p]
_ROWS = 300
#: Nulls of these are not written in files of version 2.0.
_NO_NULLS = {"dictionary", "struct", "struct of structs", "list of structs", "struct of lists"}
_ZONE = {"timestamp": "offsets as time zones"}
_CONSTANTS = "constant pages, of pylance 14 too, are read as other values"
#: Types that a version of pylance can't read in a version of files, with the cause.
UNREAD: dict[tuple[str, str], dict[str, str]] = {
    ("0.39.0", "2.0"): _ZONE,
    ("0.39.0", "2.1"): _ZONE,
    ("2.0.1", "2.0"): _ZONE,
    ("2.0.1", "2.1"): _ZONE,
    ("2.0.1", "2.2"): {
        **_ZONE,
        **dict.fromkeys(("constant", "constant string", "long constant string", "runs"), _CONSTANTS),
        "list of constants": _CONSTANTS,
        "fixed list of structs": "rows are counted as items",
    },
    ("14.0.2", "2.2"): {"fixed list of structs": "rows are counted as items"},
}
#: Versions that have 2.2 as a preview of their own: they compact no dataset of pylance 14 either.
NOT_COMPACTED = {("2.0.1", "2.2")}
#: Versions whose 2.2 is another format.
NOT_READ = {("0.39.0", "2.2")}


def _job(name: str, uri: str, columns: list[str] | None, root: Path) -> dict[str, str]:
    expected = root / f"{name}.arrow"
    table = open_dataset(uri).to_pyarrow_table(columns).sort_by("id")
    with pa.OSFile(str(expected), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return {"name": name, "uri": uri, "expected": str(expected)}


def _types(root: Path, version: str) -> list[dict[str, str]]:
    """Return datasets of one column of each type, in two fragments; the first one has deleted rows."""
    jobs = []
    for number, case in enumerate(CASES):
        if case in MISSING[version]:
            continue
        nulls = "none" if version == "2.0" and case in _NO_NULLS else "some"
        table = pa.table({"id": pa.array(range(_ROWS)), "v": made_array(case, nulls, _ROWS)})
        uri = str(root / f"types {number}")
        write_lance(uri, table.slice(0, 200), file_version=version)
        write_lance(uri, table.slice(200), "append")
        open_dataset(uri).delete("id % 10 = 3 and id < 200")
        jobs.append(_job(case, uri, ["id", "v"], root))
    return jobs


def _changed(root: Path, version: str, stable: bool) -> dict[str, str]:
    """Return a dataset that every operation changed."""
    name = "changed, stable ids" if stable else "changed"
    names = [n for n in SCHEMA.names if n != "point" or version != "2.0"]
    first = rows(0, 100).select(names)
    uri = str(root / name)
    dataset: Any = write_lance(uri, first, stable_row_ids=stable, file_version=version, max_rows_per_file=30)
    dataset.delete("id in (3, 31, 32)")
    dataset.update({"text": "'new'"}, predicate="id between 20 and 40")
    merge = dataset.merge(rows(95, 10).select(names), "target.id = source.id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    dataset.add_columns({"twice": "id * 2"})
    dataset.cast_column("small", pa.int32())
    dataset.rename_column("text", "words")
    dataset.set_config({"a": "b"})
    dataset.tags.create("here")
    dataset.compact(target_rows=60)
    dataset.delete("id = 50")
    dataset.restore(dataset.version - 1)
    return _job(name, dataset.uri, [n for n in dataset.schema().names if n != "words"] + ["words"], root)


@pytest.mark.parametrize("reader", READERS or [None])
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_earlier_pylance_reads_what_is_written(tmp_path: Path, version: str, reader: str | None) -> None:
    jobs = _types(tmp_path, version) if reader else []
    jobs += [_changed(tmp_path, version, stable) for stable in (False, True)]
    job = tmp_path / "job.json"
    job.write_text(json.dumps(jobs))
    if reader is None:
        pytest.importorskip("lance", reason="pylance is not installed")
    script = str(Path(__file__).with_name("early_reader.py"))
    done = subprocess.run([reader or sys.executable, script, str(job)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    which = (found["version"], version)
    if which in NOT_READ:
        return
    failures: dict[str, dict[str, str]] = found["failures"]
    unread = UNREAD.get(which, {}) if reader else {}
    assert unread.keys() <= failures.keys()
    for name in {*failures} - {*unread}:
        if which in NOT_COMPACTED:
            assert failures[name].pop("compact").startswith("OSError: Invalid user input: Blob column version mismatch")
        assert not failures[name], name
