"""Commits through DynamoDB: the contract, writers that die between steps, and writers of other kinds beside us."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.engines.interface import Storage
from delta_core.engines.records import RangeRequest
from delta_core.errors import CommitError, CommitStateUnknownError, EngineError, InvalidArgumentError
from delta_core.kernel.log.committers import find_committer
from delta_core.kernel.log.names import commit_name
from delta_core.kernel.plugins.committer import Committed, Committer, Conflict
from delta_core.kernel.snapshot import open_snapshot
from delta_core.runtime.processes import PerProcess
from delta_core.storage.stores import open_storage
from delta_core.testing.committer_contract import CommitterContract, proposal
from delta_plugins.dynamodb import committer as module
from delta_plugins.dynamodb.committer import DynamoCommitter, committer
from delta_plugins.dynamodb.options import DAY_S, read_settings
from tests.stores.conftest import place
from tests.stores.servers import Server

pytestmark = pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow:DeprecationWarning")


@pytest.fixture
def moto(start_server: Callable[[str], Server]) -> Server:
    """S3 and DynamoDB, an empty folder and a table of its own."""
    server = place(start_server("moto"))
    options = {**server.options, "DELTA_DYNAMO_TABLE_NAME": f"log-{uuid.uuid4().hex}"}
    peer = {**server.peer_options, **options, "AWS_S3_LOCKING_PROVIDER": "dynamodb"}
    return Server(server.bucket, options, server.endpoint, peer)


@pytest.fixture
def storage(moto: Server) -> Storage:
    return open_storage(moto.bucket, moto.options)


@pytest.fixture
def make_committer(moto: Server) -> Callable[[], DynamoCommitter]:
    def make() -> DynamoCommitter:
        made = committer(open_storage(moto.bucket, moto.options), moto.options)
        assert made is not None
        return made

    make()._table.latest()  # makes the table, once
    return make


@pytest.fixture
def client(moto: Server, make_committer: Callable[[], DynamoCommitter]) -> Any:
    made = make_committer()
    made.recover()
    return made._table.client


def read(storage: Storage, version: int) -> bytes | None:
    try:
        return bytes(storage.read([RangeRequest(f"_delta_log/{commit_name(version)}")])[0])
    except FileNotFoundError:
        return None


def items(client: Any, moto: Server) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.scan(TableName=moto.options["DELTA_DYNAMO_TABLE_NAME"])["Items"]
    return sorted(found, key=lambda i: str(i["fileName"]["S"]))


class TestDynamoCommitter(CommitterContract):
    @pytest.fixture
    def make_committer(self, make_committer: Callable[[], DynamoCommitter]) -> Callable[[], Committer]:
        return make_committer

    @pytest.fixture
    def read_commit(self, storage: Storage) -> Callable[[int], bytes | None]:
        return lambda version: read(storage, version)


# --- what others find ----------------------------------------------------------------------


def test_entry_is_as_spark_and_deltalake_write_it(
    make_committer: Callable[[], DynamoCommitter], client: Any, moto: Server, storage: Storage
) -> None:
    make_committer().commit(proposal(0))
    (item,) = items(client, moto)
    assert item["tablePath"] == {"S": moto.bucket}
    assert item["fileName"] == {"S": commit_name(0)}
    assert item["tempPath"]["S"].startswith(f".tmp/{commit_name(0)}.")
    assert item["complete"] == {"S": "true"}
    assert abs(int(item["expireTime"]["N"]) - time.time() - DAY_S) < 60
    assert storage.list_from("_delta_log").names == [commit_name(0)]
    assert storage.list_from("_delta_log/.tmp").names == []


def test_table_that_is_created_has_the_keys_of_the_others(
    client: Any, make_committer: Callable[[], DynamoCommitter], moto: Server
) -> None:
    found = client.describe_table(TableName=moto.options["DELTA_DYNAMO_TABLE_NAME"])["Table"]
    assert found["KeySchema"] == [
        {"AttributeName": "tablePath", "KeyType": "HASH"},
        {"AttributeName": "fileName", "KeyType": "RANGE"},
    ]
    assert found["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"


# --- writers that die ----------------------------------------------------------------------


class _DiedError(BaseException):
    """The writer's process is gone."""


def _dying(made: DynamoCommitter, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a committer die before a step."""

    def die(*_: object) -> None:
        raise _DiedError

    owner, _, method = step.rpartition(".")
    monkeypatch.setattr(getattr(made, owner) if owner else made, method, die)


@pytest.mark.parametrize("step", ["_claim", "_copy", "_table.mark", "_drop"])
@pytest.mark.parametrize("next_one", ["same version", "next version", "reader"])
def test_writer_that_dies_leaves_its_commit_done_or_undone(
    step: str,
    next_one: str,
    make_committer: Callable[[], DynamoCommitter],
    storage: Storage,
    client: Any,
    moto: Server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_committer().commit(proposal(0))
    ours, dying = proposal(1), make_committer()
    _dying(dying, step, monkeypatch)
    with pytest.raises(_DiedError):
        dying.commit(ours)
    landed = step != "_claim"
    other = make_committer()
    if next_one == "same version":
        outcome = other.commit(proposal(1))
        assert outcome == (Conflict(1) if landed else Committed(1, commit_name(1)))
    elif next_one == "next version":
        if not landed:
            with pytest.raises(CommitError, match="is missing"):
                other.commit(proposal(2))
            return
        assert other.commit(proposal(2)) == Committed(2, commit_name(2))
    else:
        other.recover()
    if landed:
        assert read(storage, 1) == ours.data
        assert items(client, moto)[1]["complete"] == {"S": "true"} or (step, next_one) == (
            "_table.mark",
            "same version",
        )
        assert make_committer().commit(ours) == Committed(1, commit_name(1)), (
            "the writer finds its commit when it is back"
        )
    else:
        assert read(storage, 1) != ours.data


def test_failing_copy_is_a_commit_all_the_same(
    make_committer: Callable[[], DynamoCommitter], storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAUSE", 0.0)
    made, ours = make_committer(), proposal(0)

    def fail(*_: object) -> None:
        raise EngineError("S3 is away")

    monkeypatch.setattr(made, "_copy", fail)
    assert made.commit(ours) == Committed(0, commit_name(0))
    assert read(storage, 0) is None
    make_committer().recover()
    assert read(storage, 0) == ours.data


@pytest.mark.parametrize("temporary", [".tmp/x.json.123", "_commit_1f.json.tmp"])
def test_commit_that_another_kind_of_writer_left_is_finished_by_readers(
    temporary: str, moto: Server, storage: Storage, client: Any
) -> None:
    write_deltalake(moto.bucket, pa.table({"id": [1]}), storage_options=dict(moto.options))
    line = json.dumps({"commitInfo": {"timestamp": 5, "operation": "FROM ELSEWHERE"}})
    storage.put(f"_delta_log/{temporary}", line.encode() + b"\n")
    client.put_item(
        TableName=moto.options["DELTA_DYNAMO_TABLE_NAME"],
        Item={
            "tablePath": {"S": moto.bucket},
            "fileName": {"S": commit_name(1)},
            "tempPath": {"S": temporary},
            "complete": {"S": "false"},
        },
    )
    snapshot = open_snapshot(moto.bucket, storage_options=moto.options)
    assert (snapshot.version, snapshot.history(1)[0]["operation"]) == (1, "FROM ELSEWHERE")
    assert items(client, moto)[1]["complete"] == {"S": "true"}


def test_many_finish_one_commit_at_once(
    make_committer: Callable[[], DynamoCommitter], storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, dying = proposal(0), make_committer()
    _dying(dying, "_copy", monkeypatch)
    with pytest.raises(_DiedError):
        dying.commit(ours)
    failures: list[Exception] = []

    def work(made: DynamoCommitter) -> None:
        try:
            made.recover()
        except Exception as e:  # noqa: BLE001 (the test fails on each)
            failures.append(e)

    threads = [threading.Thread(target=work, args=(make_committer(),)) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failures == []
    assert read(storage, 0) == ours.data


# --- DynamoDB's answers --------------------------------------------------------------------


class _Client:
    """DynamoDB, whose answers to puts go wrong as a list specifies: ``before`` it does them, or ``after``."""

    def __init__(self, client: Any, plan: Sequence[str]) -> None:
        self._client = client
        self._plan = list(plan)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def put_item(self, **arguments: Any) -> Any:
        from botocore.exceptions import ReadTimeoutError

        step = self._plan.pop(0) if self._plan else "well"
        found = None if step == "before" else self._client.put_item(**arguments)
        if step != "well":
            raise ReadTimeoutError(endpoint_url="x")
        return found


@pytest.mark.parametrize("plan", [["before"], ["after"], ["before", "after"], ["after", "before"]])
def test_lost_answer_of_dynamodb_is_settled(
    plan: list[str],
    make_committer: Callable[[], DynamoCommitter],
    storage: Storage,
    client: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "PAUSE", 0.0)
    made, ours = make_committer(), proposal(0)
    made._table._table._client = PerProcess(lambda: _Client(client, plan))
    assert made.commit(ours) == Committed(0, commit_name(0))
    assert read(storage, 0) == ours.data


def test_state_that_stays_unknown_is_reported_and_the_bytes_stay(
    make_committer: Callable[[], DynamoCommitter], storage: Storage, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAUSE", 0.0)
    made = make_committer()
    made._table._table._client = PerProcess(lambda: _Client(client, ["before"] * module.TRIES))
    with pytest.raises(CommitStateUnknownError, match="tempPath"):
        made.commit(proposal(0))
    assert len(storage.list_from("_delta_log/.tmp").names) == 1


def test_claim_that_can_not_be_looked_up_is_not_called_lost(
    make_committer: Callable[[], DynamoCommitter], client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The put landed, its answer was lost, and then DynamoDB is away."""
    monkeypatch.setattr(module, "PAUSE", 0.0)
    made = make_committer()
    made._table._table._client = PerProcess(lambda: _Client(client, ["after"]))
    get = made._table.get

    def fail_for_ours(name: str) -> Any:
        if made._table.client._plan:  # before the put
            return get(name)
        raise EngineError("DynamoDB is away")

    monkeypatch.setattr(made._table, "get", fail_for_ours)
    with pytest.raises(CommitStateUnknownError):
        made.commit(proposal(0))


def test_rejection_of_dynamodb_is_certain(
    make_committer: Callable[[], DynamoCommitter], storage: Storage, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from botocore.exceptions import ClientError

    made = make_committer()

    class Forbidden(_Client):
        def put_item(self, **arguments: Any) -> Any:
            found = {"Error": {"Code": "AccessDeniedException"}, "ResponseMetadata": {"HTTPStatusCode": 400}}
            raise ClientError(found, "PutItem")

    made._table._table._client = PerProcess(lambda: Forbidden(client, []))
    with pytest.raises(CommitError, match="Nothing was committed") as caught:
        made.commit(proposal(0))
    assert type(caught.value) is CommitError
    assert storage.list_from("_delta_log/.tmp").names == []


@pytest.mark.parametrize("failing", ["get", "latest"])
def test_failure_before_the_claim_is_certain(
    failing: str, make_committer: Callable[[], DynamoCommitter], storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_committer()

    def fail(*_: object) -> None:
        raise EngineError("DynamoDB is away")

    monkeypatch.setattr(made._table, failing, fail)
    with pytest.raises(CommitError, match="Nothing was committed") as caught:
        made.commit(proposal(0))
    assert type(caught.value) is CommitError
    assert read(storage, 0) is None


# --- wrong set-ups -------------------------------------------------------------------------


def test_other_spelling_of_the_path_is_rejected(moto: Server, make_committer: Callable[[], DynamoCommitter]) -> None:
    make_committer().commit(proposal(0))
    path = moto.bucket.replace("s3://", "s3a://")
    other = committer(open_storage(path, moto.options), moto.options)
    assert other is not None
    storage = open_storage(path, moto.options)
    storage.delete([f"_delta_log/{commit_name(0)}"])
    with pytest.raises(CommitError, match="Open it as s3://"):
        other.commit(proposal(0))


def test_path_under_which_others_commit_may_be_given(moto: Server, client: Any) -> None:
    options = {**moto.options, "delta_dynamo_table_path": moto.bucket.replace("s3://", "s3a://")}
    write_deltalake(moto.bucket, pa.table({"id": [1]}), storage_options=options)
    assert items(client, moto)[0]["tablePath"]["S"].startswith("s3a://")


def test_entries_of_a_table_that_is_gone_are_rejected(
    moto: Server, make_committer: Callable[[], DynamoCommitter], storage: Storage
) -> None:
    make_committer().commit(proposal(0))
    storage.delete([f"_delta_log/{commit_name(0)}"])
    with pytest.raises(CommitError, match="table that lay at"):
        make_committer().commit(proposal(0))


# --- whole tables --------------------------------------------------------------------------


def test_table_is_written_and_read_through_dynamodb(moto: Server, client: Any) -> None:
    options = dict(moto.options)
    write_deltalake(moto.bucket, pa.table({"id": [1, 2]}), storage_options=options)
    table = DeltaTable(moto.bucket, storage_options=options)
    write_deltalake(table, pa.table({"id": [3]}), mode="append")
    write_deltalake(table, pa.table({"id": [9]}), mode="overwrite")
    assert DeltaTable(moto.bucket, storage_options=options).to_pyarrow_table()["id"].to_pylist() == [9]
    assert DeltaTable(moto.bucket, version=1, storage_options=options).to_pyarrow_table().num_rows == 3
    assert [i["complete"]["S"] for i in items(client, moto)] == ["true"] * 3


@pytest.mark.peer
def test_deltalake_and_we_append_at_once_and_nothing_is_lost(moto: Server, client: Any) -> None:
    deltalake = pytest.importorskip("deltalake")
    options, peer = dict(moto.options), dict(moto.peer_options)
    write_deltalake(moto.bucket, pa.table({"id": [-1]}), storage_options=options)
    failures: list[Exception] = []

    def ours(first: int) -> None:
        try:
            for i in range(4):
                write_deltalake(moto.bucket, pa.table({"id": [first + i]}), mode="append", storage_options=options)
        except Exception as e:  # noqa: BLE001 (the test fails on each)
            failures.append(e)

    def theirs(first: int) -> None:
        try:
            for i in range(4):
                deltalake.write_deltalake(
                    moto.bucket, pa.table({"id": [first + i]}), mode="append", storage_options=peer
                )
        except Exception as e:  # noqa: BLE001 (the test fails on each)
            failures.append(e)

    threads = [threading.Thread(target=f, args=(100 * n,)) for n, f in enumerate((ours, theirs, ours, theirs))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failures == []
    wanted = [-1] + [100 * n + i for n in range(4) for i in range(4)]
    assert sorted(DeltaTable(moto.bucket, storage_options=options).to_pyarrow_table()["id"].to_pylist()) == wanted
    found = deltalake.DeltaTable(moto.bucket, storage_options=peer).to_pyarrow_table()
    assert sorted(found["id"].to_pylist()) == wanted
    assert {i["complete"]["S"] for i in items(client, moto)} == {"true"}


def test_writer_that_requests_no_dynamodb_is_not_overwritten(
    make_committer: Callable[[], DynamoCommitter],
    storage: Storage,
    client: Any,
    moto: Server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, theirs = make_committer(), proposal(0)
    claim = made._claim

    def claim_late(*arguments: Any) -> bool:
        """The other one puts its commit between our look at the log and our copy."""
        claimed = claim(*arguments)
        storage.put_if_absent(f"_delta_log/{commit_name(0)}", theirs.data)
        return claimed

    monkeypatch.setattr(made, "_claim", claim_late)
    assert made.commit(proposal(0)) == Conflict(0)
    assert read(storage, 0) == theirs.data
    assert items(client, moto)[0]["complete"] == {"S": "true"}
    assert isinstance(make_committer().commit(proposal(1)), Committed)


# --- options -------------------------------------------------------------------------------


def test_nothing_is_configured_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DELTA_DYNAMO_TABLE_NAME", "AWS_S3_LOCKING_PROVIDER"):
        monkeypatch.delenv(name, raising=False)
    assert read_settings({}) is None
    assert read_settings({"AWS_S3_LOCKING_PROVIDER": "none", "key": "k"}) is None
    assert find_committer(open_storage("/tmp/x"), {"DELTA_DYNAMO_TABLE_NAME": "t"}) is None


@pytest.mark.parametrize(
    ("options", "table", "region", "ttl"),
    [
        ({"DELTA_DYNAMO_TABLE_NAME": "t", "AWS_REGION": "eu-north-1"}, "t", "eu-north-1", DAY_S),
        ({"aws_s3_locking_provider": "dynamodb", "aws_region": "r", "AWS_REGION_DYNAMODB": "d"}, "delta_log", "d",
         DAY_S),
        ({"spark.io.delta.storage.S3DynamoDBLogStore.ddb.tableName": "t",
          "spark.io.delta.storage.S3DynamoDBLogStore.ddb.region": "r",
          "spark.io.delta.storage.S3DynamoDBLogStore.ddb.ttl": "99"}, "t", "r", 99),
        ({"io.delta.storage.S3DynamoDBLogStore.ddb.tableName": "t", "client_kwargs": {"region_name": "r"}},
         "t", "r", DAY_S),
    ],
)  # fmt: skip
def test_names_of_spark_and_deltalake_are_taken(options: dict[str, Any], table: str, region: str, ttl: int) -> None:
    found = read_settings(options)
    assert found is not None
    assert (found.table, found.access.client["region_name"], found.ttl_s) == (table, region, ttl)


def test_environment_configures_too_and_options_go_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELTA_DYNAMO_TABLE_NAME", "of-environment")
    assert read_settings({}).table == "of-environment"  # type: ignore[union-attr]
    assert read_settings({"delta_dynamo_table_name": "given"}).table == "given"  # type: ignore[union-attr]


def test_keys_of_dynamodb_alone_go_before_those_of_the_store() -> None:
    options = {
        "DELTA_DYNAMO_TABLE_NAME": "t",
        "key": "s3",
        "secret": "s3",
        "AWS_ACCESS_KEY_ID_DYNAMODB": "d",
        "AWS_SECRET_ACCESS_KEY_DYNAMODB": "e",
        "endpoint_url": "http://s3",
        "AWS_ENDPOINT_URL_DYNAMODB": "http://d",
    }
    found = read_settings(options)
    assert found is not None
    assert found.access.session == {"aws_access_key_id": "d", "aws_secret_access_key": "e"}
    assert found.access.client["endpoint_url"] == "http://d"


def test_provisioned_throughput_is_taken() -> None:
    prefix = "spark.io.delta.storage.S3DynamoDBLogStore"
    found = read_settings({f"{prefix}.ddb.tableName": "t", f"{prefix}.provisionedThroughput.rcu": "7"})
    assert found is not None
    assert found.billing["ProvisionedThroughput"] == {"ReadCapacityUnits": 7, "WriteCapacityUnits": 5}


@pytest.mark.parametrize(
    "options", [{"spark.io.delta.storage.S3DynamoDBLogStore.ddb.ttl": "-1"}, {"DELTA_DYNAMO_BILLING_MODE": "free"}]
)
def test_impossible_option_is_rejected(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="expected"):
        read_settings({"DELTA_DYNAMO_TABLE_NAME": "t", **options})
