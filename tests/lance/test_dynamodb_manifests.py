"""Datasets of ``s3+ddb://``, beside pylance: S3 and DynamoDB of moto's server."""

from __future__ import annotations

import pickle
import threading
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from delta_core import open_table
from delta_core.errors import CommitError, CorruptTableError, EngineError
from delta_core.kernel.commit import publishing
from delta_core.runtime.processes import PerProcess
from delta_core.storage.dynamodb import DynamoAccess
from delta_plugins.lance import open_dataset, write_lance
from delta_plugins.lance.manifest_stores import storage as module
from delta_plugins.lance.manifest_stores.dynamodb import DynamoManifests
from delta_plugins.lance.names import manifest_names
from tests.stores.servers import ServerMissingError, moto

pytestmark = pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow:DeprecationWarning")
boto3 = pytest.importorskip("boto3", reason="boto3 is not installed")


class Place:
    """A table of DynamoDB, and a folder of a bucket."""

    def __init__(self, endpoint: str) -> None:
        keys = {"aws_access_key_id": "tester", "aws_secret_access_key": "secret-of-tester"}
        self.options = {**keys, "aws_region": "us-east-1", "aws_endpoint": endpoint, "dynamodb_endpoint": endpoint}
        self.options["allow_http"] = "true"
        client = {"endpoint_url": endpoint, "region_name": "us-east-1"}
        self.dynamo, self.s3 = (boto3.client(n, **keys, **client) for n in ("dynamodb", "s3"))
        self.table = f"manifests-{uuid.uuid4().hex}"
        self.create(self.table, base_uri=("HASH", "S"), version=("RANGE", "N"))
        self.base = f"{uuid.uuid4().hex}/a b"
        self.uri = f"s3+ddb://bucket/{self.base}?ddbTableName={self.table}"

    def create(self, name: str, **keys: tuple[str, str]) -> None:
        self.dynamo.create_table(
            TableName=name,
            AttributeDefinitions=[{"AttributeName": n, "AttributeType": t} for n, (_, t) in keys.items()],
            KeySchema=[{"AttributeName": n, "KeyType": k} for n, (k, _) in keys.items()],
            BillingMode="PAY_PER_REQUEST",
        )

    def plain_options(self) -> dict[str, str]:
        return {k: v for k, v in self.options.items() if k != "dynamodb_endpoint"}

    def write(self, *ids: int, mode: Any = "append") -> Any:
        return write_lance(self.uri, rows(*ids), mode, storage_options=self.options)

    def open(self, **options: Any) -> Any:
        return open_dataset(self.uri, storage_options=self.options, **options)

    def ids(self, **options: Any) -> list[int]:
        found = open_table(self.uri, storage_options=self.options, **options)
        return sorted(found.to_pyarrow_table().column("id").to_pylist())

    def theirs(self, **options: Any) -> Any:
        lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
        return lance.dataset(self.uri, storage_options=self.options, **options)

    def their_ids(self, **options: Any) -> list[int]:
        return sorted(self.theirs(**options).to_table().column("id").to_pylist())

    def entries(self) -> dict[int, dict[str, Any]]:
        found = self.dynamo.scan(TableName=self.table)["Items"]
        return {int(i["version"]["N"]): i for i in sorted(found, key=lambda i: int(i["version"]["N"]))}

    def objects(self) -> list[str]:
        found = self.s3.list_objects_v2(Bucket="bucket", Prefix=self.base + "/").get("Contents", [])
        return [o["Key"].removeprefix(self.base + "/") for o in found]

    def stage_again(self, version: int) -> str:
        """Undo the last two steps of the commit of a version; return the name that its manifest is staged under."""
        item = self.entries()[version]
        final = item["path"]["S"]
        staged = f"{final}-{uuid.uuid4()}"
        self.s3.copy_object(Bucket="bucket", CopySource={"Bucket": "bucket", "Key": final}, Key=staged)
        self.s3.delete_object(Bucket="bucket", Key=final)
        self.dynamo.put_item(TableName=self.table, Item={**item, "path": {"S": staged}})
        return staged.removeprefix(self.base + "/")

    def check_settled(self, num_versions: int) -> None:
        entries = self.entries()
        assert list(entries) == [*range(1, num_versions + 1)]
        for version, item in entries.items():
            assert item["path"]["S"] == f"{self.base}/_versions/{manifest_names(version)[0]}"
        assert [k for k in self.objects() if ".manifest-" in k] == []


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    try:
        with moto(tmp_path_factory.mktemp("moto")) as server:
            yield server.endpoint
    except ServerMissingError as e:
        pytest.skip(str(e))


@pytest.fixture
def place(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(publishing, "PAUSE", 0.0)
    return Place(endpoint)


def test_changes_of_ours_and_of_pylance_follow_one_another(place: Place) -> None:
    place.write(1, 2, 3, mode="create")
    place.theirs().insert(rows(4))
    place.open().delete("id = 2")
    place.theirs().update({"id": "id + 10"}, where="id = 3")
    place.open().update({"id": "id + 10"}, predicate="id = 4")
    place.theirs().delete("id = 1")
    assert place.ids() == place.their_ids() == [13, 14]
    for version in range(1, 7):
        assert place.ids(version=version) == place.their_ids(version=version)
    place.check_settled(6)
    place.open().compact()
    place.theirs().optimize.compact_files()
    assert place.ids() == place.their_ids() == [13, 14]
    theirs, ours = place.entries()[2], place.entries()[3]
    assert {n: [*v] for n, v in ours.items()} == {n: [*v] for n, v in theirs.items() if n != "e_tag"}


@pytest.mark.parametrize("by", ["latest", "number"])
def test_half_finished_commit_of_pylance_is_completed_by_us(place: Place, by: str) -> None:
    place.write(1, mode="create")
    place.theirs().insert(rows(2))
    staged = place.stage_again(2)
    assert staged in place.objects()
    assert place.ids() == [1, 2] if by == "latest" else place.open(version=2).count() == 2
    place.check_settled(2)
    assert place.their_ids() == [1, 2]


@pytest.mark.parametrize("by", ["latest", "number", "append"])
def test_half_finished_commit_of_ours_is_completed_by_pylance(
    place: Place, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    place.write(1, mode="create")
    with monkeypatch.context() as patch:

        def stop(*_: Any) -> Any:
            raise KeyboardInterrupt

        patch.setattr(module._StoredManifests, "_put", stop)
        with pytest.raises(KeyboardInterrupt):
            place.write(2)
    assert place.entries()[2]["path"]["S"].startswith(f"{place.base}/_versions/{manifest_names(2)[0]}-")
    if by == "append":
        place.theirs().insert(rows(3))
    assert place.their_ids(**({"version": 2} if by == "number" else {})) == ([1, 2, 3] if by == "append" else [1, 2])
    place.check_settled(3 if by == "append" else 2)
    assert place.ids(version=2) == [1, 2]


def test_racing_writers_of_both_kinds_lose_nothing(place: Place) -> None:
    place.write(0, mode="create")
    place.theirs()
    barrier = threading.Barrier(6)
    failures: list[Exception] = []

    def run(number: int) -> None:
        barrier.wait()
        for step in range(3):
            ids = rows(number * 10 + step + 1)
            try:
                if number < 4:
                    write_lance(place.uri, ids, "append", storage_options=place.options)
                else:
                    place.theirs().insert(ids)
            except Exception as e:  # noqa: BLE001
                failures.append(e)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert place.ids() == place.their_ids() == sorted([0, *(n * 10 + s + 1 for n in range(6) for s in range(3))])
    place.check_settled(19)


class _Client:
    """DynamoDB whose puts lose their answers: before or after they are done."""

    def __init__(self, client: Any, plan: list[str], error: Exception) -> None:
        self._client, self._plan, self._error = client, plan, error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def put_item(self, **arguments: Any) -> Any:
        when = self._plan.pop(0) if self._plan else ""
        if when != "before":
            self._client.put_item(**arguments)
        if when:
            raise self._error


def _with_client(patch: pytest.MonkeyPatch, place: Place, plan: list[str], error: Exception) -> None:
    made = DynamoManifests.__init__

    def broken(self: Any, table: str, access: DynamoAccess) -> None:
        made(self, table, access)
        self._table._client = PerProcess(lambda: _Client(place.dynamo, plan, error))

    patch.setattr(DynamoManifests, "__init__", broken)


@pytest.mark.parametrize("plan", [["after"], ["before"], ["before", "after"], ["", "after"], ["", "before"]])
def test_lost_answer_of_dynamodb_is_settled(place: Place, monkeypatch: pytest.MonkeyPatch, plan: list[str]) -> None:
    from botocore.exceptions import ReadTimeoutError

    place.write(1, mode="create")
    with monkeypatch.context() as patch:
        _with_client(patch, place, plan, ReadTimeoutError(endpoint_url="there"))
        assert place.write(2).version == 2
    assert place.ids() == place.their_ids() == [1, 2]
    assert list(place.entries()) == [1, 2]


def test_rejection_of_dynamodb_is_certain(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from botocore.exceptions import ClientError

    place.write(1, mode="create")
    before = [k for k in place.objects() if ".manifest-" not in k]
    answer: Any = {"Error": {"Code": "AccessDeniedException"}, "ResponseMetadata": {"HTTPStatusCode": 400}}
    with monkeypatch.context() as patch:
        _with_client(patch, place, ["before"], ClientError(answer, "PutItem"))
        with pytest.raises(CommitError, match="AccessDeniedException"):
            place.write(2)
    assert [k for k in place.objects() if ".manifest-" not in k] == before
    assert place.ids() == [1]


def test_table_that_is_not_there_or_has_other_keys_is_an_error(place: Place) -> None:
    other = f"other-{uuid.uuid4().hex}"
    place.create(other, tablePath=("HASH", "S"), fileName=("RANGE", "S"))
    for name in ("nothing", other):
        uri = place.uri.replace(place.table, name)
        with pytest.raises(EngineError, match=name):
            open_table(uri, storage_options=place.options)
        with pytest.raises(EngineError, match=name):
            write_lance(uri, rows(1), storage_options=place.options)
    assert place.objects() == []


Damage = Callable[[dict[str, Any]], Any]


@pytest.mark.parametrize(
    "damage",
    [lambda i: i.pop("path"), lambda i: i.update(path={"N": "1"}), lambda i: i.update(size={"S": "1"}),
     lambda i: i.update(path={"S": "elsewhere/_versions/1.manifest"})],
    ids=["no path", "number as path", "text as size", "path of another dataset"],
)  # fmt: skip
def test_damaged_item_is_rejected_by_name(place: Place, damage: Damage) -> None:
    place.write(1, mode="create")
    item = place.entries()[1]
    damage(item)
    place.dynamo.put_item(TableName=place.table, Item=item)
    with pytest.raises(CorruptTableError, match=f"version 1 of {place.base} in table '{place.table}' of DynamoDB"):
        place.open()


def test_branch_of_pylance_is_read_and_kept_by_a_cleanup(place: Place) -> None:
    place.write(1, mode="create")
    place.theirs().create_branch("dev")
    place.write(2, mode="overwrite")
    place.open().cleanup(keep_versions=1, unreferenced_older_than=timedelta(0))
    assert place.ids(branch="dev") == [1]
    assert place.ids() == [2]
    # the branch names the dataset with its store: the place of its files is the same without it
    plain = open_table(f"s3://bucket/{place.base}", branch="dev", storage_options=place.plain_options())
    assert plain.to_pyarrow_table().column("id").to_pylist() == [1]


def test_entry_of_a_detached_version_is_not_the_latest(place: Place) -> None:
    place.write(1, mode="create")
    item = {**place.entries()[1], "version": {"N": str((1 << 63) + 5)}}
    place.dynamo.put_item(TableName=place.table, Item=item)
    assert place.open().version == 1
    place.write(2)
    assert place.ids() == [1, 2]


def test_storage_is_pickled_with_its_store(place: Place) -> None:
    place.write(1, 2, mode="create")
    again = pickle.loads(pickle.dumps(place.open().engine.storage))
    assert again.root == f"s3://bucket/{place.base}"
    place.stage_again(1)
    assert again.list_from("_versions").names == [manifest_names(1)[0]]


@pytest.mark.parametrize("through_store", [False, True])
def test_cleanup_in_an_object_store_leaves_what_versions_need(place: Place, through_store: bool) -> None:
    uri = place.uri if through_store else f"s3://bucket/{place.base}"
    options = place.options if through_store else place.plain_options()
    write_lance(uri, rows(1, 2), storage_options=options)
    tagged = open_dataset(uri, storage_options=options)
    tagged.tags.create("kept")
    write_lance(uri, rows(3, 4), "overwrite", storage_options=options)
    write_lance(uri, rows(5, 6), "overwrite", storage_options=options)
    dataset = open_dataset(uri, storage_options=options)
    dataset.delete("id = 5")
    for name in ("data/0123456789abcdef0123456789abcdef.lance", "_transactions/9-abandoned.txn"):
        place.s3.put_object(Bucket="bucket", Key=f"{place.base}/{name}", Body=b"of an abandoned writer")
    before = place.objects()
    dataset.cleanup(keep_versions=1)
    young = place.objects()
    assert {n for n in young if "0123456789abcdef" in n or "abandoned" in n}  # younger than a week
    dataset.cleanup(keep_versions=1, unreferenced_older_than=timedelta(0))
    assert open_dataset(uri, storage_options=options).versions() == [1, 4]
    after = place.objects()
    needed = {d.files.file_path(i, 0) for d in (dataset, tagged) for i in range(len(d.manifest.fragments))}
    assert {n for n in after if n.startswith("data/")} == needed
    assert len([n for n in after if n.startswith("_versions/")]) == len([n for n in after if ".txn" in n]) == 2
    assert len(after) < len(young) < len(before)
    for version, expected in ((1, [1, 2]), (4, [6])):
        found = open_table(uri, version=version, storage_options=options)
        assert found.to_pyarrow_table().column("id").to_pylist() == expected
    assert open_table(uri, tag="kept", storage_options=options).count() == 2
