"""The settings of a client: from options under the names of ``deltalake`` and of Spark, else from the environment."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from delta_core.api import InvalidArgumentError, UnsupportedOperationError

__all__ = ["Settings", "read_settings"]

_API = "/api/2.1/unity-catalog"
_PREFIXES = ("unity_catalog_", "unity_", "databricks_", "")
_URLS = ("workspace_url", "host", "url", "uri")
_TOKENS = ("access_token", "token")
_FLAGS = ("allow_http_url",)
#: Ways of ``deltalake`` to obtain a token from an identity service.
_IDENTITIES = (
    "client_id", "client_secret", "authority_id", "authority_host", "msi_endpoint", "msi_resource_id", "object_id",
    "federated_token_file", "use_azure_cli",
)  # fmt: skip


class Settings(Struct, frozen=True):
    """The settings of a client.

    Parameters
    ----------
    url : str
        The root of the API, without a slash at its end.
    token : str or None
        The bearer token; None for a server that takes requests without one.
    storage : Mapping
        The other options, which are those of the stores of the tables.
    """

    url: str
    token: str | None
    storage: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"Settings({self.url!r}, token={'***' if self.token else None})"


def read_settings(options: Mapping[str, Any]) -> Settings:
    """Read the settings of a client; does no I/O.

    Parameters
    ----------
    options : Mapping
        Names have the prefix ``unity_catalog_``, ``unity_``, ``databricks_`` or none, in any case: ``url``, ``uri``,
        ``host``, ``workspace_url``; ``token``, ``access_token``; ``allow_http_url``. The environment has the same
        names with a prefix, in capitals.

    Raises
    ------
    InvalidArgumentError
        Neither options nor environment have the address of the server, it is no URL of a server, or a token would be
        sent without encryption.
    UnsupportedOperationError
        For an option that would obtain a token from an identity service.
    """
    given = {name.lower(): value for name, value in options.items()}
    known = {name: value for name, value in given.items() if _is_own(name)}
    prefixed = [p + name for p in _PREFIXES[1:3] for name in _IDENTITIES]
    for name in prefixed:
        if name in given:
            raise UnsupportedOperationError(
                f"The option {name!r} would obtain a token from an identity service, which this client does not do. "
                "Obtain a token there, and pass it as databricks_token.",
                option=name,
            )
    url = _first(known, _URLS)
    if url is None:
        raise InvalidArgumentError(
            "The address of Unity Catalog is not known. Pass the storage option unity_catalog_url (or databricks_host),"
            " such as http://localhost:8080, or set UNITY_CATALOG_URL or DATABRICKS_HOST in the environment."
        )
    token = _first(known, _TOKENS)
    if token is not None and not (token.isascii() and token.isprintable()):
        raise InvalidArgumentError("The token of Unity Catalog has characters that no token has, such as a line break.")
    allows = str(_first(known, _FLAGS) or "").lower() in ("true", "1", "yes", "on")
    storage = {name: value for name, value in options.items() if name.lower() not in known}
    return Settings(_checked(url, token is not None, allows), token, storage)


def _is_own(name: str) -> bool:
    short = (*_URLS, *_TOKENS, *_FLAGS)
    return name in (p + s for p in _PREFIXES for s in short)


def _first(given: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the first setting of a list of names that is there and not empty: options precede the environment."""
    for value in _candidates(given, names):
        if value is not None and str(value).strip():
            return str(value).strip()
    return None


def _candidates(given: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[Any]:
    spelled = [p + name for p in _PREFIXES for name in names]
    yield from (given.get(name) for name in spelled)
    yield from (os.environ.get(name.upper()) for name in spelled if name not in names)


def _checked(url: str, has_token: bool, allows_http: bool) -> str:
    text = url if "://" in url else f"https://{url}"
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InvalidArgumentError(
            f"Found {parts.scheme}://{parts.hostname or ''} as the address of Unity Catalog, expected a URL such as "
            "https://host or http://localhost:8080."
        )
    if parts.username is not None or parts.password is not None:
        raise InvalidArgumentError(
            f"Found a user in the address of Unity Catalog at {parts.hostname}. Pass a token by the storage option "
            "unity_catalog_token, and the address without a user."
        )
    if parts.scheme == "http" and has_token and not allows_http and not _is_loopback(parts.hostname):
        raise InvalidArgumentError(
            f"The token of Unity Catalog would be sent to http://{parts.hostname} without encryption. Use https, or "
            "pass unity_allow_http_url=true if the network between is trusted."
        )
    base = text.rstrip("/")
    return base if base.endswith(_API) else base + _API


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
