"""Storage options: fsspec's own pass through; the names that ``deltalake`` takes are translated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from delta_core.errors import InvalidArgumentError, did_you_mean
from delta_core.runtime.patterns import lazy_pattern

__all__ = ["check_known", "fsspec_options", "without_credentials"]

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
    "request_payer": ("requester_pays",),
    "server_side_encryption": ("s3_additional_kwargs", "ServerSideEncryption"),
    "sse_kms_key_id": ("s3_additional_kwargs", "SSEKMSKeyId"),
    "sse_bucket_key_enabled": ("s3_additional_kwargs", "BucketKeyEnabled"),
    "user_agent": ("config_kwargs", "user_agent"),
    "connect_timeout": ("config_kwargs", "connect_timeout"),
    "timeout": ("config_kwargs", "read_timeout"),
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
    "mount_allow_unsafe_rename", "max_retries", "retry_timeout", "copy_if_not_exists", "ec2_metadata_disabled",
    "force_credential_load",
})  # fmt: skip
#: Options of every filesystem of fsspec, which no signature lists.
_EVERY = frozenset({"use_listings_cache", "listings_expiry_time", "max_paths", "skip_instance_cache"})
#: Replacements of options that fsspec's filesystems don't have.
_REMEDIES: Mapping[str, str] = {
    "bearer_token": "Pass credential= of the package azure-identity.",
    "use_azure_cli": "Pass anon=False: azure-identity then asks the Azure CLI, among others.",
    "use_fabric_endpoint": "Pass account_host=onelake.blob.fabric.microsoft.com.",
    "role_arn": "Configure the role in a profile, and pass profile=.",
    "web_identity_token_file": "Configure it in a profile, and pass profile=, or set it in the environment.",
    "sse_customer_key_base64": "Keys of customers are not supported.",
    "allow_invalid_certificates": "Pass client_kwargs={'verify': ...} for S3.",
}
_SECONDS = lazy_pattern(r"\s*(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?)?\s*")
#: The account of Azure's emulator, the same on every machine.
_EMULATOR = (
    "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6"
    "IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;"
)
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
            out[target[0]] = {**out.get(target[0], {}), target[1]: _typed(target[1], name, value)}
    return out


def check_known(scheme: str, kind: Any, options: Mapping[str, Any]) -> None:
    """Reject an option that the filesystem of a scheme does not have, before a library below fails on it or ignores it.

    Parameters
    ----------
    scheme : str
        The scheme of the URI.
    kind : class
        The filesystem's class; of other classes than s3fs, gcsfs and adlfs, options are not known.
    options : Mapping
        The result of `fsspec_options`.

    Raises
    ------
    InvalidArgumentError
        Naming the option, but not its value, which may be a secret.
    """
    import inspect

    if scheme not in _TABLES or kind.__module__.partition(".")[0] not in ("s3fs", "gcsfs", "adlfs"):
        return
    taken = {n for c in kind.__mro__ if "__init__" in vars(c) for n in inspect.signature(c.__init__).parameters}
    known = (taken | _EVERY) - {"self", "args", "kwargs", "storage_options"}
    for name in options:
        if name not in known:
            prefix, table = _TABLES[scheme]
            short = name.lower().removeprefix(prefix)
            names = sorted({*known, *(prefix + n for n in table)})
            remedy = _REMEDIES.get(short) or did_you_mean(name.lower(), names).strip()
            raise InvalidArgumentError(
                f"The storage option {name!r} is not known for {scheme}://. {remedy}{' ' if remedy else ''}Known: "
                f"{', '.join(names)}.",
                option=name,
            )


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
    if short in ("virtual_hosted_style_request", "force_path_style", "s3_addressing_style") and scheme in ("s3", "s3a"):
        style = value if short.endswith("style") and short[0] == "s" else _STYLES[short, _plain(value) is True]
        config = out.get("config_kwargs") or {}
        out["config_kwargs"] = {**config, "s3": {**(config.get("s3") or {}), "addressing_style": style}}
    elif short == "proxy_url" and scheme in ("s3", "s3a"):
        proxies = {"http": value, "https": value}
        out["config_kwargs"] = {**(out.get("config_kwargs") or {}), "proxies": proxies}
    elif short.removeprefix("storage_") == "use_emulator" and _TABLES[scheme][1] is _AZURE:
        if _plain(value) is True:
            out.setdefault("connection_string", _EMULATOR)
    else:
        out[name] = value


_STYLES = {
    ("virtual_hosted_style_request", True): "virtual", ("virtual_hosted_style_request", False): "path",
    ("force_path_style", True): "path", ("force_path_style", False): "auto",
}  # fmt: skip


def _typed(key: str, name: str, value: Any) -> Any:
    """Return a value as the client takes it: seconds as a number."""
    if not key.endswith("_timeout") or not isinstance(value, str):
        return _plain(value) if key == "BucketKeyEnabled" else value
    match = _SECONDS.fullmatch(value)
    if match is None:
        raise InvalidArgumentError(
            f"The storage option {name!r} is {value!r}, expected a time such as 30s or 500ms.", option=name
        )
    unit = match[2] or "s"
    return float(match[1]) * (0.001 if unit[:2] in ("ms", "mi") and unit[:3] != "min" else 60 if unit[0] == "m" else 1)


def _plain(value: Any) -> Any:
    """Return true and false for their names, and a key file's contents parsed."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("{"):
        return json.loads(value)
    return {"true": True, "false": False}.get(value.lower(), value)
