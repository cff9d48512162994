"""The names of pylance: each call and each of its arguments answers as pylance does, or is rejected by name."""

from __future__ import annotations

import json
import pickle
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import delta_plugins.lance.compat as ours
from delta_core.errors import DeltaError, UnsupportedOperationError
from delta_plugins.lance import open_dataset
from tests.example_counts import IS_LONG
from tests.lance.compat_cases import NAMES, NEW, TWICE, Case, answer, answers, cases, classes, made, recorded, surface

_DELETE, _INSERT = ("when_matched_delete", (), {}), ("when_not_matched_insert_all", (), {})
_DELETE_OTHERS = ("when_not_matched_by_source_delete", ("id < 2",), {})


def _merged_twice(*clauses: tuple[str, tuple[str, ...], dict[str, Any]]) -> str:
    """Return the title of a merge whose source has two rows for each row that they match."""
    return Case("MergeInsertBuilder", "execute", (TWICE, "id", clauses)).title


#: Calls that answer differently, by the beginning of their title, and why.
DIFFERENT = {
    "LanceDataset.to_table(filter='k + 2147483647": "an overflow is an error",
    "LanceDataset.to_table(filter='case": "pylance types the constants of a case differently, and fails",
    "LanceDataset.to_table({'a': 'case": "pylance types the constants of a case differently, and fails",
    "LanceDataset.take([4, 0, 4], {'a': 'case": "pylance types the constants of a case differently, and fails",
    "LanceDataset.to_table(['p.x'])": "pylance returns 0.0 for a field of a struct that is null",
    "LanceDataset.to_table(['p.n', 'id', 'p.x'])": "pylance returns an empty text for a field of a struct that is null",
    "LanceDataset.to_table({'a': 'k * 2', 'b': 's', 'c': 'p.x'})": "pylance returns 0.0 for a field of a null struct",
    "LanceDataset.take([4, 0, 4], ['p.n', 'id', 'p.x'])": "fields of a struct are in the order of the request",
    "LanceDataset.to_table(order_by=order('k', True), columns=['id'], limit=3)": "pylance sorts by returned columns",
    "LanceDataset.update({'f': 'id + 0.5'}": "pylance does not add a fraction to a whole number",
    "DatasetOptimizer.compact_files(target_rows_per_fragment=4)": "fragments end at other rows",
    "DatasetOptimizer.compact_files(target_rows_per_fragment=2, materialize_deletions_threshold=0.2)": "as above",
    _merged_twice(_DELETE): "a row that several rows match is deleted, as of Delta; pylance fails",
    _merged_twice(_DELETE, _INSERT): "as above",
    _merged_twice(
        _DELETE_OTHERS
    ): "a row that several rows match is an error, as of Delta, whatever the clauses change",
}
#: Values that are not defaults, of arguments that have to be rejected.
VALUES: dict[str, Any] = {
    "retry_timeout": timedelta(seconds=1),
    "enable_v2_manifest_paths": False,
    "enable_stable_row_ids": True,
    "max_rows_per_group": 7,
    "batch_readahead": 3,
    "blob_mode": "bytes",
    "train": False,
}
#: Arguments of clauses and plans, which the calls of `execute` and the texts of plans cover.
INDIRECT = {
    ("MergeInsertBuilder", "condition"),
    ("MergeInsertBuilder", "expr"),
    ("MergeInsertBuilder", "max_retries"),
    ("LanceScanner", "verbose"),
    ("LanceDataset", "on"),
    # test_external_blobs.py
    ("module", "allow_external_blob_outside_bases"),
}
#: Arguments without which a call can't be made.
NEEDED: dict[str, tuple[Any, ...]] = {
    "write_dataset": (NEW, "nowhere"),
    "dataset": ("nowhere",),
    "take": ([0],),
    "head": (1,),
    "sample": (1,),
    "delete": ("id = 1",),
    "update": ({"s": "'x'"},),
    "add_columns": ({"x": "id"},),
    "update_config": ({"a": "b"},),
    "create_scalar_index": ("k", "BTREE"),
    "drop_index": ("no",),
    "commit": ("nowhere", ours.LanceOperation.Append([])),
    "use_index": (False,),
    "retry_timeout": (timedelta(seconds=1),),
}


@cache
def _answers() -> dict[str, Any]:
    found: dict[str, Any] = recorded()["answers"]
    return found


def _chosen() -> list[Case]:
    """Return all calls in the long form; else those that are cheap, and some of those that only repeat a kind."""
    return [c for i, c in enumerate(cases()) if IS_LONG or c.owner != "LanceDataset" or c.name != "take" or i % 3 == 0]


def _differs(mine: dict[str, Any], theirs: dict[str, Any]) -> bool:
    errors = [{*a.get("error", ())} for a in (mine, theirs)]
    if all(errors):
        mine, theirs = ({k: v for k, v in a.items() if k != "error"} for a in (mine, theirs))
    return mine != theirs or bool(errors[1] - errors[0] - {"other", "TypeError"})


@pytest.mark.parametrize("case", _chosen(), ids=lambda c: c.title)
def test_answer_equals_that_of_pylance(tmp_path: Path, case: Case) -> None:
    mine = json.loads(json.dumps(answer(ours, case, made(tmp_path))))
    if any(case.title.startswith(t) for t in DIFFERENT):
        return
    assert not _differs(mine, _answers()[case.title]), (mine, _answers()[case.title])


def test_each_listed_case_differs(tmp_path: Path) -> None:
    listed = [c for c in cases() if any(c.title.startswith(t) for t in DIFFERENT)]
    assert all(any(c.title.startswith(t) for c in listed) for t in DIFFERENT)
    same = []
    for i, case in enumerate(listed):
        (tmp_path / str(i)).mkdir()
        mine = json.loads(json.dumps(answer(ours, case, made(tmp_path / str(i)))))
        same += [] if _differs(mine, _answers()[case.title]) else [case.title]
    assert not same


@pytest.mark.parametrize(("owner", "name"), [(o, n) for o, names in NAMES.items() for n in names])
def test_each_argument_is_compared_or_rejected_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: str, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    parameters = recorded()["surface"][owner][name]
    compared: set[str] = set()
    for case in cases():
        if (case.owner, case.name) == (owner, name):
            compared |= {*parameters[: len(case.arguments)], *case.named}
    dataset = ours.dataset(made(tmp_path))
    target = {**classes(ours, dataset), "MergeInsertBuilder": dataset.merge_insert("id")}[owner]
    before = dataset.latest_version
    for parameter in [p for p in parameters if p not in compared and (owner, p) not in INDIRECT]:
        value = VALUES.get(parameter, True)
        needed = tuple(a for p, a in zip(parameters, NEEDED.get(name, ()), strict=False) if p != parameter)
        with pytest.raises(ours.NotOfferedError, match=rf"{parameter}|{name}"):
            getattr(target, name)(*needed, **{parameter: value})
    assert dataset.latest_version == before


@pytest.mark.parametrize("name", ["to_table", "to_batches", "count_rows", "head", "scanner", "delete", "insert"])
def test_argument_that_pylance_does_not_have_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    target = ours.dataset(made(tmp_path))
    needed = {"insert": (NEW,), **NEEDED}.get(name, ())
    with pytest.raises((TypeError, ours.NotOfferedError), match="other"):
        getattr(target, name)(*needed, other=1)
    assert target.latest_version == target.version


@pytest.mark.parametrize(
    "call",
    [
        lambda ds: ours.batch_udf,
        lambda ds: ours.LanceOperation.Merge,
        lambda ds: ds.create_index,
        lambda ds: ds.sql("select 1"),
        lambda ds: ds.get_fragments()[0].merge_columns,
        lambda ds: ds.stats.index_stats("x"),
        lambda ds: ds.merge_insert("id").explain_plan(),
        lambda ds: ds.scanner().take([1]),
        lambda ds: ds.optimize.optimize_indices(),
    ],
)
def test_other_name_is_an_error_with_our_call(tmp_path: Path, call: Any) -> None:
    with pytest.raises(ours.NotOfferedError, match=r"of pylance is not offered: \w") as e:
        call(ours.dataset(made(tmp_path)))
    assert isinstance(e.value, UnsupportedOperationError)
    assert isinstance(e.value, AttributeError)


@pytest.mark.parametrize(
    "text", ["id / 2 = 1", "concat(s, 'x') = 'v1x'", "substr(s, 0, 1) = 'v'", "log(id) > 1", "k <=> 1", "id & 1 = 1"]
)
def test_sql_that_may_mean_something_else_is_rejected(tmp_path: Path, text: str) -> None:
    dataset = ours.dataset(made(tmp_path))
    for call in (dataset.count_rows, dataset.delete, lambda t: dataset.to_table(filter=t)):
        with pytest.raises(ValueError, match="may return something else here than in pylance"):
            call(text)
    with pytest.raises(ValueError, match="may return something else"):
        dataset.update({"k": text.partition(" = ")[0].partition(" > ")[0]})
    assert dataset.latest_version == dataset.version


_BACKSLASHES = ["a\\nb", "a\nb", "a\\\\b", "a\\b", "k_1", "k01", "k\\_1", "k\\01", "\\", "\\t", "\t", "100%", "A"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"s = 'a\nb'", [r"a\nb"]),
        (r"s = 'a\\b'", [r"a\\b"]),
        (r"s = 'a\b'", [r"a\b"]),
        (r"s = '\'", ["\\"]),
        (r"s in ('\t', 'a\nb')", [r"a\nb", r"\t"]),
        (r"s = '\101'", []),
        (r"s like 'k\_1'", ["k_1"]),
        (r"s like 'k\\_1'", [r"k\_1", r"k\01"]),
        (r"s like '100\%'", ["100%"]),
        ("s = 'a\nb'", ["a\nb"]),
        (r"upper(s) = 'A\NB'", [r"a\nb"]),
    ],
)
def test_backslash_in_a_text_is_kept(tmp_path: Path, text: str, expected: list[str]) -> None:
    dataset = ours.write_dataset(pa.table({"s": _BACKSLASHES}), str(tmp_path / "d"))
    assert dataset.to_table(filter=text).column("s").to_pylist() == expected
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    assert lance.dataset(dataset.uri).to_table(filter=text).column("s").to_pylist() == expected
    dataset.update({"s": r"'\n'"}, where=text)
    assert dataset.count_rows(r"s = '\n'") == len(expected)
    dataset.delete(r"s = '\n'")
    assert dataset.count_rows() == len(_BACKSLASHES) - len(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("g = 0.1", [1]),
        ("0.1 = g", [1]),
        ("g <> 0.1", [2, 3, 5]),
        ("g <= 0.1", [1]),
        ("g > 0.30000001", [2, 5]),
        ("g in (0.1, 0.5)", [1, 2]),
        ("g not in (0.1, 1e-1)", [2, 3, 5]),
        ("g between 0.1 and 0.3", [1, 3]),
        ("not (G = 0.1) or s.g = 0.7", [1, 2, 3, 4, 5]),
        ("g = 16777217", [5]),
        ("g < 1e39", [1, 2, 3, 5]),
        ("g = cast(0.1 as double)", []),
        ("g = cast(0.1 as float)", [1]),
        ("g + 0 = 0.1", []),
        ("d = 0.1", [1]),
    ],
)
def test_numbers_are_rounded_to_float32_columns(tmp_path: Path, text: str, expected: list[int]) -> None:
    floats = pa.array([0.1, 0.5, 0.30000001, None, 16777217.0], pa.float32())
    struct = pa.StructArray.from_arrays([pa.array([0.7] * 5, pa.float32())], ["g"])
    rows = pa.table({"g": floats, "d": [0.1, 0.5, 0.3, None, 1.0], "s": struct, "i": range(1, 6)})
    dataset = ours.write_dataset(rows, str(tmp_path / "d"))
    assert dataset.to_table(filter=text).column("i").to_pylist() == expected
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    assert lance.dataset(dataset.uri).to_table(filter=text).column("i").to_pylist() == expected
    assert dataset.count_rows(text) == len(expected)
    assert dataset.update({"i": "0"}, where=text)["num_rows_updated"] == len(expected)
    dataset.delete(text)
    assert dataset.count_rows() == 5 - len(expected)


def test_deletion_without_a_predicate_is_rejected(tmp_path: Path) -> None:
    """pylance rejects it; that of `ours` deletes all rows."""
    dataset = ours.dataset(made(tmp_path))
    count = dataset.count_rows()
    for delete in (dataset.delete, dataset.get_fragments()[0].delete):
        with pytest.raises(TypeError, match="Found no predicate"):
            delete(None)
    assert ours.dataset(dataset.uri).count_rows() == count
    assert ours.dataset(dataset.uri).version == dataset.version


def test_errors_are_those_that_scripts_catch(tmp_path: Path) -> None:
    dataset = ours.dataset(made(tmp_path))
    for caught in (OSError, ValueError, DeltaError, ours.CompatError):
        with pytest.raises(caught):
            dataset.to_table(filter="nope = 1")
    made_before = ours.write_fragments(NEW, dataset.uri)
    ours.dataset(dataset.uri).insert(NEW, mode="overwrite")
    with pytest.raises(ours.CommitConflictError) as e:
        ours.LanceDataset.commit(dataset.uri, ours.LanceOperation.Append(made_before), read_version=dataset.version)
    assert isinstance(e.value, OSError)
    assert e.value.__cause__ is not None


def test_fragments_are_committed_from_other_processes(tmp_path: Path) -> None:
    where = made(tmp_path)
    base = ours.dataset(where)
    new = pickle.loads(pickle.dumps(ours.write_fragments(NEW, where, max_rows_per_file=2)))
    assert [f.num_rows for f in new] == [2, 1]
    left = pickle.loads(pickle.dumps(base.get_fragments()[0].delete("id < 2")))
    done = ours.LanceDataset.commit(where, ours.LanceOperation.Append(new), read_version=base.version)
    done = ours.LanceDataset.commit(where, ours.LanceOperation.Delete([left], [1], "x"), read_version=base.version)
    ids = sorted(done.to_table(["id"]).column("id").to_pylist())
    assert ids == [2, 3, 8, 9, 10, 12, 20, 21, 22]
    assert ours.dataset(where).count_rows() == len(ids)
    assert not open_dataset(where).verify().findings


def test_deletion_of_another_version_is_rejected(tmp_path: Path) -> None:
    where = made(tmp_path)
    left = ours.dataset(where, version=2).get_fragments()[0].delete("id < 2")
    with pytest.raises(ValueError, match="of version 2, found read_version 3"):
        ours.LanceDataset.commit(where, ours.LanceOperation.Delete([left], [], "x"), read_version=3)


def test_changes_of_a_branch_never_reach_the_main_one(tmp_path: Path) -> None:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    where = made(tmp_path)
    lance.dataset(where).create_branch("dev", 3)
    branch, before = ours.dataset(where).checkout_version(("dev", None)), ours.dataset(where).latest_version
    new = ours.write_fragments(NEW, where)
    for change in (
        lambda: branch.insert(NEW),
        lambda: branch.delete("true"),
        lambda: ours.write_dataset(NEW, branch, mode="overwrite"),
        lambda: ours.LanceDataset.commit(branch, ours.LanceOperation.Append(new), read_version=branch.version),
    ):
        with pytest.raises(ValueError, match="several base paths"):
            change()
    assert ours.dataset(where).latest_version == before


def test_dataset_pickles(tmp_path: Path) -> None:
    dataset = ours.dataset(made(tmp_path), version=2)
    again = pickle.loads(pickle.dumps(dataset))
    assert (again.version, again.to_table(["id", "s"])) == (2, dataset.to_table(["id", "s"]))


def test_schema_of_streams_is_that_of_their_batches(tmp_path: Path) -> None:
    dataset = ours.dataset(made(tmp_path))
    reader = dataset.scanner({"a": "k * 2", "b": "upper(s)"}, with_row_id=True).to_reader()
    assert reader.read_all().schema == pa.schema([("a", pa.int32()), ("b", pa.string()), ("_rowid", pa.uint64())])


def test_recorded_answers_are_those_of_pylance() -> None:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    assert surface(lance) == recorded()["surface"]
    if IS_LONG:
        assert json.loads(json.dumps(answers(lance))) == _answers()
