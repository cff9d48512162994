"""Storage options: fsspec's own pass through; the names that ``deltalake`` takes are translated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["fsspec_options"]

_S3 = {
    "access_key_id": ("key",), "secret_access_key": ("secret",), "session_token": ("token",),
    "endpoint_url": ("endpoint_url",), "endpoint": ("endpoint_url",), "region": ("client_kwargs", "region_name"),
    "default_region": ("client_kwargs", "region_name"), "skip_signature": ("anon",), "profile": ("profile",),
}  # fmt: skip
_GCS = {
    "service_account": ("token",), "service_account_path": ("token",), "google_application_credentials": ("token",),
    "application_credentials": ("token",),
}  # fmt: skip
_AZURE = {
    "account_name": ("account_name",), "storage_account_name": ("account_name",), "account_key": ("account_key",),
    "storage_account_key": ("account_key",), "access_key": ("account_key",), "sas_token": ("sas_token",),
    "storage_sas_token": ("sas_token",), "connection_string": ("connection_string",),
    "storage_connection_string": ("connection_string",), "client_id": ("client_id",),
    "client_secret": ("client_secret",), "tenant_id": ("tenant_id",),
}  # fmt: skip
_TABLES = {
    **{s: ("aws_", _S3) for s in ("s3", "s3a", "s3n")},
    **{s: ("google_", _GCS) for s in ("gs", "gcs")},
    **{s: ("azure_", _AZURE) for s in ("az", "abfs", "abfss", "adl")},
}  # fmt: skip
#: Options of the peer that say how writes are made safe or requests repeated: fsspec has its own ways.
_DROPPED = frozenset({
    "allow_http", "allow_unsafe_rename", "conditional_put", "s3_allow_unsafe_rename", "s3_locking_provider",
    "virtual_hosted_style_request", "force_path_style", "use_emulator", "timeout", "connect_timeout", "max_retries",
    "retry_timeout", "copy_if_not_exists",
})  # fmt: skip


def fsspec_options(scheme: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that fsspec's filesystem for a scheme takes.

    A name of the ``deltalake`` package (``AWS_ACCESS_KEY_ID``, ``aws_region``, ``azure_storage_account_key`` ...)
    is translated, whatever its case; any other passes as it is.
    """
    prefix, table = _TABLES.get(scheme, ("", {}))
    out: dict[str, Any] = {}
    for name, value in options.items():
        plain = name.lower()
        short = plain.removeprefix(prefix) if prefix else plain
        if table and short in _DROPPED:
            continue
        # fsspec's own spelling wins over the peer's where both would do
        target = table.get(short) if plain != name or plain.startswith(prefix) or short not in _own(table) else None
        if target is None:
            out[name] = value
        elif len(target) == 1:
            out[target[0]] = _plain(value)
        else:
            out.setdefault(target[0], {})[target[1]] = value
    return out


def _own(table: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    return frozenset(target[0] for target in table.values())


def _plain(value: Any) -> Any:
    return {"true": True, "false": False}.get(value.lower(), value) if isinstance(value, str) else value
