"""Storage options: fsspec's own pass through; the names that ``deltalake`` takes are translated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["fsspec_options", "without_credentials"]

Table = Mapping[str, tuple[str, ...]]

_S3: Table = {
    "access_key_id": ("key",),
    "secret_access_key": ("secret",),
    "session_token": ("token",),
    "token": ("token",),
    "endpoint_url": ("endpoint_url",),
    "endpoint": ("endpoint_url",),
    "endpoint_url_s3": ("endpoint_url",),
    "region": ("client_kwargs", "region_name"),
    "default_region": ("client_kwargs", "region_name"),
    "skip_signature": ("anon",),
    "profile": ("profile",),
}
_GCS: Table = {
    "service_account": ("token",),
    "service_account_path": ("token",),
    "google_application_credentials": ("token",),
    "application_credentials": ("token",),
    "service_account_key": ("token",),
}
_AZURE: Table = {
    "account_name": ("account_name",),
    "storage_account_name": ("account_name",),
    "account_key": ("account_key",),
    "storage_account_key": ("account_key",),
    "access_key": ("account_key",),
    "storage_access_key": ("account_key",),
    "sas_token": ("sas_token",),
    "storage_sas_token": ("sas_token",),
    "sas_key": ("sas_token",),
    "storage_sas_key": ("sas_token",),
    "connection_string": ("connection_string",),
    "storage_connection_string": ("connection_string",),
    "client_id": ("client_id",),
    "storage_client_id": ("client_id",),
    "client_secret": ("client_secret",),
    "storage_client_secret": ("client_secret",),
    "tenant_id": ("tenant_id",),
    "storage_tenant_id": ("tenant_id",),
    "authority_id": ("tenant_id",),
    "skip_signature": ("anon",),
}
_TABLES: Mapping[str, tuple[str, Table]] = {
    **{s: ("aws_", _S3) for s in ("s3", "s3a")},
    **{s: ("google_", _GCS) for s in ("gs", "gcs")},
    **{s: ("azure_", _AZURE) for s in ("az", "abfs", "abfss", "adl")},
}
#: Options of the peer that specify how writes are made safe or requests repeated: fsspec has its own ways.
_DROPPED = frozenset({
    "allow_http", "allow_unsafe_rename", "conditional_put", "s3_allow_unsafe_rename", "s3_locking_provider",
    "force_path_style", "s3_addressing_style", "use_emulator", "timeout", "connect_timeout", "max_retries",
    "retry_timeout", "copy_if_not_exists", "ec2_metadata_disabled", "force_credential_load",
})  # fmt: skip
#: Arguments of an S3 client that specify where its servers are.
_S3_PLACE = frozenset({"endpoint_url", "region_name", "verify"})
#: Options of the committer on DynamoDB.
_COMMITTER = ("delta_dynamo_", "spark.io.delta.storage.", "io.delta.storage.")


def fsspec_options(scheme: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that fsspec's filesystem for a scheme takes.

    A name of the ``deltalake`` package (``AWS_ACCESS_KEY_ID``, ``aws_region``, ``azure_storage_account_key`` ...)
    is translated, whatever its case; any other passes as it is.
    """
    prefix, table = _TABLES.get(scheme, ("", {}))
    if not table:
        return dict(options)
    own = frozenset(target[0] for target in table.values())
    out: dict[str, Any] = {}
    for name, value in options.items():
        plain = name.lower()
        short = plain.removeprefix(prefix)
        if short in _DROPPED or plain.startswith(_COMMITTER) or plain.endswith("_dynamodb"):
            continue
        # fsspec's own spelling wins over the peer's if both would do
        target = table.get(short) if plain != name or plain.startswith(prefix) or short not in own else None
        if target is None:
            _put_other(out, scheme, name, short, value)
        elif len(target) == 1:
            out[target[0]] = _plain(value)
        else:
            out.setdefault(target[0], {})[target[1]] = value
    return out


def without_credentials(kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that open another bucket of a kind of store anonymously: its servers' location, no more.

    Credentials of the environment are not used either.
    """
    given = fsspec_options(kind, options)
    out: dict[str, Any] = {k: v for k, v in given.items() if k in ("endpoint_url", "use_ssl")}
    if kind == "s3":
        client = {k: v for k, v in (given.get("client_kwargs") or {}).items() if k in _S3_PLACE}
        style = {k: v for k, v in (given.get("config_kwargs") or {}).items() if k == "s3"}
        return {**out, "anon": True, "client_kwargs": client, "config_kwargs": style}
    return {**out, "token": "anon"} if kind == "gs" else {}


def _put_other(out: dict[str, Any], scheme: str, name: str, short: str, value: Any) -> None:
    """Translate what has a form of its own; pass on anything else."""
    if short == "virtual_hosted_style_request":
        style = "virtual" if _plain(value) is True else "path"
        out.setdefault("config_kwargs", {}).setdefault("s3", {})["addressing_style"] = style
    else:
        out[name] = value


def _plain(value: Any) -> Any:
    """Return true and false for their names, and a key file's contents parsed."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("{"):
        return json.loads(value)
    return {"true": True, "false": False}.get(value.lower(), value)
