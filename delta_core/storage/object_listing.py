"""Listings from a start name by the stores' own calls: no page below the start is fetched.

fsspec lists whole directories. A log of many commits has many pages there; a reader needs the last ones.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

from delta_core.engines.records import Listing

__all__ = ["BULK", "Walked", "bulk_delete", "first_keys", "lister", "walk_keys"]

#: Lists (filesystem, the directory's key without a slash at its end, start, how many names suffice).
Lister = Callable[[Any, str, str, "int | None"], Listing]
Entry = tuple[str, int, int, str]
#: Path, bytes, and ms since the epoch if the store reports them.
Walked = tuple[str, int, "int | None"]
#: The most keys that one call deletes.
BULK = 1000


def lister(filesystem: Any) -> Lister | None:
    """Return the function that lists a filesystem from a start name, None if fsspec's listing has to do."""
    names = filesystem.protocol if isinstance(filesystem.protocol, tuple) else (filesystem.protocol,)
    for scheme, call, function in (("s3", "call_s3", _s3), ("gs", "_call", _gcs), ("abfs", "service_client", _azure)):
        if scheme in names and hasattr(filesystem, call):
            return function
    return None


def first_keys(filesystem: Any, key: str, limit: int) -> list[str] | None:
    """Return paths of files below a directory, relative to it, at most ``limit``; None if that may cost many calls."""
    function = lister(filesystem)
    if function is not None:
        bucket, prefix = _place(key)
        return [name[len(prefix) :] for name in _FIRST[function](filesystem, bucket, prefix, limit)]
    if "memory" in filesystem.protocol:
        root = key.rstrip("/") + "/"
        return sorted(name[len(root) :] for name in filesystem.find(key))[:limit]
    return None


def walk_keys(filesystem: Any, key: str) -> Iterator[list[Walked]] | None:
    """Yield all files below a directory, a page of the store at a time; None if only folders can be listed."""
    if lister(filesystem) is not _s3:
        return None
    bucket, prefix = _place(key)
    return _keys_of_s3(filesystem, bucket, prefix)


def _keys_of_s3(filesystem: Any, bucket: str, prefix: str) -> Iterator[list[Walked]]:
    parameters = {"Bucket": bucket, "Prefix": prefix, **getattr(filesystem, "req_kw", {})}
    while True:
        page = filesystem.call_s3("list_objects_v2", **parameters)
        contents = [o for o in page.get("Contents", ()) if not o["Key"].endswith("/")]
        yield [(o["Key"][len(prefix) :], int(o["Size"]), _ms(o["LastModified"])) for o in contents]
        if not page.get("IsTruncated"):
            return
        parameters["ContinuationToken"] = page["NextContinuationToken"]


def bulk_delete(filesystem: Any) -> Callable[[Any, Sequence[str]], None] | None:
    """Return what deletes up to `BULK` keys of a bucket in one call, None if the store has no such call."""
    return _delete_of_s3 if lister(filesystem) is _s3 else None


def _delete_of_s3(filesystem: Any, keys: Sequence[str]) -> None:
    places = [_key_place(key) for key in keys]
    wanted = {"Objects": [{"Key": name} for _, name in places], "Quiet": True}
    extra = getattr(filesystem, "req_kw", {})
    found = filesystem.call_s3("delete_objects", Bucket=places[0][0], Delete=wanted, **extra)
    errors = [e for e in found.get("Errors", ()) if e.get("Code") != "NoSuchKey"]
    if errors:
        first = errors[0]
        raise OSError(f"{len(errors)} files were not deleted, such as {first.get('Key')}: {first.get('Message')}")


def _key_place(key: str) -> tuple[str, str]:
    bucket, _, name = key.lstrip("/").partition("/")
    return bucket, name


def _listing(found: list[Entry], start: str, is_complete: bool = True) -> Listing:
    entries = sorted(entry for entry in found if entry[0] >= start and entry[0])
    sizes, modified, tags = [e[1] for e in entries], [e[2] for e in entries], [e[3] for e in entries]
    return Listing([e[0] for e in entries], sizes, modified, tags, is_complete)


def _suffices(found: list[Entry], start: str, limit: int | None) -> bool:
    return limit is not None and sum(entry[0] >= start for entry in found) >= limit


def _place(key: str) -> tuple[str, str]:
    """Return bucket (or container) and prefix of a directory."""
    bucket, _, directory = key.strip("/").partition("/")
    return bucket, f"{directory}/" if directory else ""


def _s3(filesystem: Any, key: str, start: str, limit: int | None = None) -> Listing:
    bucket, prefix = _place(key)
    parameters = {"Bucket": bucket, "Prefix": prefix, "Delimiter": "/", **getattr(filesystem, "req_kw", {})}
    # directory buckets list in no order
    if bucket.endswith("--x-s3"):
        limit = None
    elif start:
        parameters["StartAfter"] = prefix + _just_below(start)
    found: list[Entry] = []
    while True:
        page = filesystem.call_s3("list_objects_v2", **parameters)
        contents = page.get("Contents", ())
        found += [
            (o["Key"][len(prefix) :], int(o["Size"]), _ms(o["LastModified"]), _tag(o.get("ETag"))) for o in contents
        ]
        if not page.get("IsTruncated") or _suffices(found, start, limit):
            return _listing(found, start, not page.get("IsTruncated"))
        parameters["ContinuationToken"] = page["NextContinuationToken"]


def _just_below(start: str) -> str:
    """Return a text below a start name with next to no name between: S3 lists what comes after a key, not the key."""
    last = ord(start[-1])
    return start[:-1] + (chr(last - 1) + "~" if 0x20 < last < 0x7F else "")


def _gcs(filesystem: Any, key: str, start: str, limit: int | None = None) -> Listing:
    from fsspec.asyn import sync

    bucket, prefix = _place(key)

    async def pages() -> tuple[list[Entry], bool]:
        found: list[Entry] = []
        token = None
        while True:
            page = await filesystem._call(
                "GET",
                "b/{}/o",
                bucket,
                delimiter="/",
                prefix=prefix or None,
                pageToken=token,
                json_out=True,
                startOffset=prefix + start if start else None,
                fields="nextPageToken,items(name,size,updated,generation)",
            )
            found += [
                (o["name"][len(prefix) :], int(o["size"]), _ms(o["updated"]), _tag(o.get("generation")))
                for o in page.get("items", ())
            ]
            token = page.get("nextPageToken")
            if token is None or _suffices(found, start, limit):
                return found, token is None

    entries, is_complete = sync(filesystem.loop, pages)
    return _listing(entries, start, is_complete)


def _azure(filesystem: Any, key: str, start: str, limit: int | None = None) -> Listing:
    from fsspec.asyn import sync

    container, prefix = _place(key)

    async def walk(client: Any, **parameters: str) -> tuple[list[Entry], bool]:
        blobs: AsyncIterator[Any] = client.walk_blobs(name_starts_with=prefix or None, delimiter="/", **parameters)
        found: list[Entry] = []
        async for b in blobs:
            name = b["name"][len(prefix) :]
            # a prefix, which represents a directory, has no size
            if "last_modified" not in b or name < start:
                continue
            if limit is not None and len(found) >= limit:
                return found, False
            found.append((name, int(b["size"]), _ms(b["last_modified"]), _tag(b.get("etag"))))
        return found, True

    async def found() -> tuple[list[Entry], bool]:
        async with filesystem.service_client.get_container_client(container=container) as client:
            if start:
                try:
                    return await walk(client, start_from=prefix + start)
                except TypeError:  # an older client library
                    pass
            return await walk(client)

    entries, is_complete = sync(filesystem.loop, found)
    return _listing(entries, start, is_complete)


def _first_of_s3(filesystem: Any, bucket: str, prefix: str, limit: int) -> list[str]:
    extra = getattr(filesystem, "req_kw", {})
    page = filesystem.call_s3("list_objects_v2", Bucket=bucket, Prefix=prefix, MaxKeys=limit, **extra)
    return [o["Key"] for o in page.get("Contents", ())]


def _first_of_gcs(filesystem: Any, bucket: str, prefix: str, limit: int) -> list[str]:
    from fsspec.asyn import sync

    parameters = {"prefix": prefix or None, "maxResults": limit, "json_out": True, "fields": "items(name)"}
    page = sync(filesystem.loop, filesystem._call, "GET", "b/{}/o", bucket, **parameters)
    return [o["name"] for o in page.get("items", ())]


def _first_of_azure(filesystem: Any, container: str, prefix: str, limit: int) -> list[str]:
    from fsspec.asyn import sync

    async def names() -> list[str]:
        async with filesystem.service_client.get_container_client(container=container) as client:
            pages = client.list_blob_names(name_starts_with=prefix or None, results_per_page=limit).by_page()
            async for page in pages:
                return [name async for name in page]
            return []

    found: list[str] = sync(filesystem.loop, names)
    return found


#: Functions that return the first keys below a prefix in one call, by the function that lists the store.
_FIRST: dict[Lister, Callable[[Any, str, str, int], list[str]]] = {
    _s3: _first_of_s3,
    _gcs: _first_of_gcs,
    _azure: _first_of_azure,
}


def _tag(found: object) -> str:
    return str(found or "").strip('"')


def _ms(when: str | datetime) -> int:
    found = datetime.fromisoformat(when) if isinstance(when, str) else when
    return int(found.timestamp() * 1000)
