"""Storage options: those of deltalake and of the stores are translated; others are rejected by name, without values."""

from __future__ import annotations

from typing import Any

import pytest

from delta_core import DeltaTable
from delta_core.errors import DeltaError, InvalidArgumentError
from delta_core.storage.credentials import fsspec_options

STORES = {"s3": "s3://bucket/t", "gs": "gs://bucket/t", "abfss": "abfss://c@account.dfs.core.windows.net/t"}


@pytest.mark.parametrize(
    ("scheme", "option", "advice"),
    [
        ("s3", "aws_regoin", "Did you mean 'aws_region'"),
        ("s3", "AWS_SECRET_ACCES_KEY", "Did you mean 'aws_secret_access_key'"),
        ("s3", "endpoint_ulr", "Did you mean 'endpoint_url'"),
        ("s3", "aws_role_arn", "Configure the role in a profile"),
        ("s3", "aws_sse_customer_key_base64", "not supported"),
        ("s3", "bearer_token", "credential="),
        ("s3", "azure_storage_account_key", "is not known for s3://"),
        ("gs", "google_service_acount", "Did you mean 'google_service_account'"),
        ("gs", "use_emulator", "is not known for gs://"),
        ("abfss", "azure_storage_bearer_token", "is not known for abfss://"),
        ("abfss", "bearer_token", "credential="),
        ("abfss", "use_fabric_endpoint", "account_host="),
        ("abfss", "azure_use_azure_cli", "anon=False"),
        ("abfss", "acount_name", "Did you mean 'account_name'"),
    ],
)
def test_option_that_is_not_known_is_rejected_by_name_without_its_value(scheme: str, option: str, advice: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"storage option '{option}' is not known for {scheme}://") as caught:
        DeltaTable(STORES[scheme], storage_options={option: "hunter2", "anon": "true"})
    assert advice in str(caught.value)
    assert "Known: " in str(caught.value)
    assert "hunter2" not in str(caught.value) + repr(caught.value.facts)
    assert caught.value.option == option


def test_option_of_a_link_of_a_chain_is_checked_too() -> None:
    with pytest.raises(InvalidArgumentError, match="'regoin' is not known for s3://"):
        DeltaTable("zip://t::s3://bucket/a.zip", storage_options={"s3": {"regoin": "x"}})


@pytest.mark.parametrize(
    ("scheme", "given", "expected"),
    [
        ("s3", {"server_side_encryption": "aws:kms", "AWS_SSE_KMS_KEY_ID": "k", "aws_sse_bucket_key_enabled": "true"},
         {"s3_additional_kwargs": {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "k", "BucketKeyEnabled": True}}),
        ("s3", {"proxy_url": "http://p:8080"},
         {"config_kwargs": {"proxies": {"http": "http://p:8080", "https": "http://p:8080"}}}),
        ("s3", {"timeout": "30s", "AWS_CONNECT_TIMEOUT": "500 milliseconds"},
         {"config_kwargs": {"read_timeout": 30.0, "connect_timeout": 0.5}}),
        ("s3a", {"timeout": "2 minutes"}, {"config_kwargs": {"read_timeout": 120.0}}),
        ("s3", {"timeout": 7}, {"config_kwargs": {"read_timeout": 7}}),
        ("s3", {"aws_request_payer": "true"}, {"requester_pays": True}),
        ("s3", {"force_path_style": "true"}, {"config_kwargs": {"s3": {"addressing_style": "path"}}}),
        ("s3", {"AWS_S3_ADDRESSING_STYLE": "virtual"}, {"config_kwargs": {"s3": {"addressing_style": "virtual"}}}),
        ("s3", {"aws_virtual_hosted_style_request": "false", "user_agent": "me"},
         {"config_kwargs": {"s3": {"addressing_style": "path"}, "user_agent": "me"}}),
        ("s3", {"allow_http": "true", "max_retries": "3", "AWS_COPY_IF_NOT_EXISTS": "x"}, {}),
        ("az", {"use_emulator": "false"}, {}),
    ],
)  # fmt: skip
def test_option_is_translated(scheme: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert fsspec_options(scheme, given) == expected


def test_emulator_of_azure_is_its_well_known_account() -> None:
    for name in ("use_emulator", "azure_storage_use_emulator", "AZURE_USE_EMULATOR"):
        found = fsspec_options("az", {name: "true"})
        assert list(found) == ["connection_string"]
        assert "AccountName=devstoreaccount1;" in found["connection_string"]


def test_time_that_is_none_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="'timeout' is 'soon', expected a time such as 30s"):
        fsspec_options("s3", {"timeout": "soon"})


def test_translation_changes_no_mapping_of_the_caller() -> None:
    config: dict[str, Any] = {"s3": {"payload_signing_enabled": True}}
    fsspec_options("s3", {"config_kwargs": config, "force_path_style": "true", "timeout": "3s"})
    assert config == {"s3": {"payload_signing_enabled": True}}


def test_options_of_the_filesystem_itself_are_known() -> None:
    options = {
        "anon": True,
        "use_ssl": False,
        "default_block_size": 1 << 20,
        "skip_instance_cache": True,
        "batch_size": 3,
    }
    with pytest.raises(DeltaError) as caught:
        DeltaTable(
            "s3://bucket/t", storage_options={**options, "endpoint_url": "http://127.0.0.1:9", "max_retries": "0"}
        )
    assert "is not known" not in str(caught.value)
