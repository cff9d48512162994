"""Verifying a dataset reports each damage of its files, and nothing of sound ones."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from delta_core.cli.app import main
from delta_core.kernels.row_set import RowSet
from delta_plugins.lance.commit.draft import Draft
from delta_plugins.lance.commit.indices import index_messages
from delta_plugins.lance.dataset import LanceDataset
from delta_plugins.lance.format import open_dataset
from delta_plugins.lance.names import manifest_names
from delta_plugins.lance.version_manifests import manifest_path
from delta_plugins.lance.wire import decode, encode
from tests.lance.changed_datasets import made

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture(params=["plain", "stable"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(FIXTURES / request.param, tmp_path / "t"))


def data_file(dataset: LanceDataset) -> Path:
    return Path(dataset.uri) / dataset.files.file_path(0, 0)


def test_sound_dataset_has_no_findings(folder: Path) -> None:
    report = open_dataset(str(folder)).verify()
    assert report.ok, report.to_text()
    assert report.checked["files"] > 0


def test_missing_cut_and_damaged_data_files_are_found(folder: Path) -> None:
    dataset = open_dataset(str(folder))
    path = data_file(dataset)
    data = path.read_bytes()
    path.write_bytes(data[:-4] + b"XXXX")
    assert dataset.verify().rules() == {"data-file-damaged"}
    path.write_bytes(data[:-1])
    assert dataset.verify().rules() <= {"data-file-size", "data-file-damaged"}
    assert not dataset.verify().ok
    path.unlink()
    [finding] = [f for f in dataset.verify().findings.to_pylist() if f["rule"] == "data-file-missing"]
    assert finding["file"].endswith(path.name)


def test_missing_and_damaged_deletion_files_are_found(folder: Path) -> None:
    latest = open_dataset(str(folder))
    opened = (latest.checkout(v) for v in reversed(latest.versions()))
    version = next(d.version for d in opened if d.stats().num_deletion_files)
    for path in folder.glob("_deletions/*"):
        path.write_bytes(b"nothing")
    assert "deletion-file-damaged" in open_dataset(str(folder), version=version).verify().rules()
    shutil.rmtree(folder / "_deletions")
    assert "deletion-file-missing" in open_dataset(str(folder), version=version).verify().rules()


def test_command_prints_the_report_and_its_exit_code_states_findings(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(folder)]) == 0
    assert "nothing found" in capsys.readouterr().out
    data_file(open_dataset(str(folder))).unlink()
    assert main(["verify", str(folder)]) == 1
    assert "data-file-missing" in capsys.readouterr().out
    assert main(["verify", str(folder), "--deep"]) == 2


@pytest.mark.parametrize("bitmap", [b"nothing", RowSet.from_positions([0, 1 << 20]).to_roaring(32)])
def test_fragments_of_an_index_that_are_damaged_or_were_never_there_are_found(tmp_path: Path, bitmap: bytes) -> None:
    lance = pytest.importorskip("lance", reason="pylance is not installed")
    where = made(tmp_path).uri
    lance.dataset(where).create_scalar_index("id", "BTREE")
    dataset = open_dataset(where)
    assert not dataset.verify().findings
    [index] = index_messages(dataset.manifest)
    message = {**decode("IndexMetadata", index, "a test"), "fragment_bitmap": bitmap}
    draft = Draft(dataset.manifest, [encode("IndexMetadata", message)])
    damaged = Path(where) / manifest_path("", manifest_names(draft.version)[0])
    damaged.write_bytes(draft.encode(b"", ""))
    assert "index-damaged" in open_dataset(where).verify().rules()
