"""``python -m tests.corpus.make``: write the corpus again with delta-spark and deltalake.

Run it in an environment with ``delta-spark==4.4.0`` and ``deltalake==1.6.6``; `README.md` specifies more. Names of
tables make only these again.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import re
import shutil
import sys
import traceback
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.corpus.bitmaps import write_bitmaps
from tests.corpus.rows import digest
from tests.corpus.tables import Table

HERE = Path(__file__).parent
#: If tables are written: those that name files by absolute path name this folder.
SCRATCH = Path("/tmp/delta-corpus")
#: Rows of more than these are recorded by their digest alone.
MOST_ROWS = 300
CHANGE_FIELDS = [
    {"name": "_change_type", "type": "string", "nullable": True, "metadata": {}},
    {"name": "_commit_version", "type": "long", "nullable": True, "metadata": {}},
]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.corpus.make", description=__doc__)
    parser.add_argument("names", nargs="*", help="tables to make, as writer/name or a part of it; all if there is none")
    parser.add_argument("--missing", action="store_true", help="make only tables that the manifest has no record of")
    options = parser.parse_args()
    chosen = options.names
    manifest = HERE / "manifest.json"
    before = json.loads(manifest.read_text()) if manifest.exists() else {"tables": []}
    records = {record["id"]: record for record in before["tables"]}
    bitmaps = write_bitmaps(HERE / "roaring")
    failed = []
    for writer, tables in _writers():
        started = None
        for table in tables:
            name = f"{writer.name}/{table.name}"
            if chosen and not any(part in name for part in chosen) or options.missing and name in records:
                continue
            started = started or writer()
            try:
                records[name] = make(started, table)
            except Exception:  # noqa: BLE001 - every other table is made
                traceback.print_exc()
                failed.append(name)
                continue
            print(name, flush=True)
            _save(records, bitmaps)
    _save(records, bitmaps)
    if failed:
        sys.exit(f"not made: {', '.join(failed)}")


def _save(records: dict[str, Any], bitmaps: list[dict[str, Any]]) -> None:
    """Write the manifest, in the order of the lists of tables; what these no longer have is removed."""
    names = [f"{writer.name}/{table.name}" for writer, tables in _writers() for table in tables]
    for lost in set(records) - set(names):
        for folder in ("tables", "expected"):
            shutil.rmtree(HERE / folder / lost, ignore_errors=True)
    tables = [records[name] for name in names if name in records]
    versions = {name: importlib.metadata.version(name) for name in ("delta-spark", "pyspark", "deltalake", "pyroaring")}
    head = json.dumps({"format": 1, "made_with": versions, "scratch": str(SCRATCH)})
    text = f'{head[:-1]}, "roaring": [\n{_lines(bitmaps)}\n], "tables": [\n{_lines(tables)}\n]}}\n'
    (HERE / "manifest.json").write_text(text, encoding="utf-8")


def _lines(records: list[dict[str, Any]]) -> str:
    """Return records as JSON, one a line, so that a change of one shows as such."""
    return ",\n".join(json.dumps(record, separators=(",", ":"), ensure_ascii=False) for record in records)


def _writers() -> list[tuple[Any, list[Table]]]:
    from tests.corpus import deltalake_tables, spark_tables
    from tests.corpus.deltalake import Deltalake
    from tests.corpus.spark import Spark

    return [(Spark, spark_tables.TABLES), (Deltalake, deltalake_tables.TABLES)]


def make(writer: Any, table: Table) -> dict[str, Any]:
    """Write a table and what a reader must find in it, and return its record."""
    name = f"{writer.name}/{table.name}"
    path = SCRATCH / name
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    with writer.configured(table.conf):
        writer.run(table.steps, path)
    record: dict[str, Any] = {"id": name, "family": name, "source": {"repo": "own", "writer": writer.name}}
    texts: dict[str, str] = {}
    if table.error:
        record |= {"versions": {}, "latest_version": None, "expect": {"read": "error", "error_kind": table.error}}
    else:
        record |= _found(writer, table, path, texts)
    writer.run(table.after, path)
    _copy(path, HERE / "tables" / name)
    expected = HERE / "expected" / name
    shutil.rmtree(expected, ignore_errors=True)
    for file, text in texts.items():
        expected.mkdir(parents=True, exist_ok=True)
        (expected / file).write_text(text, encoding="utf-8")
    record["features"] = sorted(_tags(record, HERE / "tables" / name))
    return record


def _found(writer: Any, table: Table, path: Path, texts: dict[str, str]) -> dict[str, Any]:
    """Return what the writer finds in its table, and add the rows to `texts`."""
    state = writer.state(path)
    latest, files = state["latest_version"], state.pop("files")
    protocol = state["protocol"]
    state["protocol"] = {
        "min_reader": protocol["minReaderVersion"],
        "min_writer": protocol["minWriterVersion"],
        "reader_features": sorted(protocol["readerFeatures"]) if "readerFeatures" in protocol else None,
        "writer_features": sorted(protocol["writerFeatures"]) if "writerFeatures" in protocol else None,
    }
    counts = [json.loads(stats or "{}").get("numRecords") for _, _, stats in files]
    lines = sorted(f"{unquote(path)}\t{vector}" for path, vector, _ in files)
    record = {
        **state,
        "live_files": len(files),
        "live_files_digest": digest(lines),
        "versions": {},
        "expect": {"read": "rows"},
    }
    if None not in counts:
        record["num_records_in_stats"] = sum(counts)
    if table.gone:
        record["versions_that_must_raise"] = list(table.gone)
    if table.needs:
        record["needs"] = list(table.needs)
    for version in _chosen(latest, min(set(range(latest + 1)) - set(table.gone))):
        if version in table.unreadable:
            _assert_raises(writer, path, version)
            record["versions"][str(version)] = {"error": "data files missing: vacuumed"}
            continue
        rows = writer.rows(path, version)
        entry: dict[str, Any] = {"rows": len(rows), "hash": digest(rows)}
        name = f"v{version}.rows"
        if table.as_json:
            entry["rows_json"] = f"expected/{writer.name}/{table.name}/v{version}.rows.json"
            found = [json.dumps(row, ensure_ascii=False) for row in writer.variants(path, version)]
            texts[f"v{version}.rows.json"] = "[\n" + ",\n".join(found) + "\n]\n"
        elif 0 < len(rows) <= MOST_ROWS:
            entry["lines"] = f"expected/{writer.name}/{table.name}/{name}"
            texts[name] = "".join(f"{row}\n" for row in rows)
        record["versions"][str(version)] = entry
    if table.changes:
        start, end = table.changes
        fields = [*state["schema"]["fields"], *CHANGE_FIELDS]
        rows = writer.changes(path, start, end, {"type": "struct", "fields": fields})
        record["cdf"] = {"start": start, "end": end, "rows": len(rows), "hash": digest(rows)}
    return record


def _chosen(latest: int, first: int) -> list[int]:
    """Return the versions whose rows are recorded: up to five all, else the first, the middle and the last two."""
    if latest - first < 5:
        return list(range(first, latest + 1))
    return [first, (first + latest) // 2, latest - 1, latest]


def _assert_raises(writer: Any, path: Path, version: int) -> None:
    try:
        writer.rows(path, version)
    except Exception:  # noqa: BLE001 - each writer has errors of its own
        return
    raise AssertionError(f"{path} can be read at version {version}")


def _copy(path: Path, to: Path) -> None:
    """Copy a table without what Hadoop keeps beside each file."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(path, to, ignore=shutil.ignore_patterns(".*.crc", "_SUCCESS"))


def _tags(record: dict[str, Any], path: Path) -> set[str]:
    """Return what is in use in a table, for whoever looks for one."""
    log = path / "_delta_log"
    names = [file.relative_to(log).as_posix() for file in log.rglob("*") if file.is_file()]
    tags = {f"log:{kind}" for kind in ("crc", "compacted.json") if any(n.endswith(kind) for n in names)}
    for name in names:
        if name.startswith("_sidecars/"):
            tags.add("checkpoint:sidecar")
        elif ".checkpoint." in name:
            parts = name.split(".")
            kinds = {3: "checkpoint:v1", 4: f"checkpoint:v2-{parts[-1]}", 5: "checkpoint:multipart"}
            tags.add(kinds[len(parts)])
    if protocol := record.get("protocol"):
        tags.add(f"protocol:{protocol['min_reader']}/{protocol['min_writer']}")
        tags |= {f"feature:{name}" for name in protocol["writer_features"] or ()}
        if record["column_mapping"] != "none":
            tags.add(f"columnMapping:{record['column_mapping']}")
        tags |= {"partitioned"} if record["partition_columns"] else set()
        tags |= {
            f"type:{t}"
            for t in re.findall(
                r'"(array|map|struct|binary|variant|void|timestamp_ntz|decimal)', json.dumps(record["schema"]["fields"])
            )
        }
    text = "".join(file.read_text(errors="replace") for file in log.glob("*.json") if ".checkpoint." not in file.name)
    tags |= {f"dv:{kind}" for kind in re.findall(r'"storageType":"(\w)"', text)}
    tags |= {f"op:{name}" for name, n in Counter(re.findall(r'"operation":"([^"]*)"', text)).items() if n}
    if kind := record["expect"].get("error_kind"):
        tags.add(f"neg:{kind}")
    return tags


if __name__ == "__main__":
    main()
