"""Joining of close byte ranges, so that one call serves several."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from delta_core.engines.records import RangeRequest

__all__ = ["REMOTE_GAP", "join_ranges"]

#: Ranges of one remote file closer than this are fetched by one call.
REMOTE_GAP = 256 * 1024

Fetch = Callable[[Sequence[RangeRequest]], "list[bytes | memoryview]"]


def join_ranges(requests: Sequence[RangeRequest], fetch: Fetch, gap: int) -> list[bytes | memoryview]:
    """Fetch ranges, those of one file that are at most ``gap`` bytes apart by one request.

    Returns one buffer a request, in the order requested; a range past the file's end comes back short.
    """
    order = sorted(range(len(requests)), key=lambda i: (requests[i].path, requests[i].offset))
    merged: list[RangeRequest] = []
    members: list[list[int]] = []
    for i in order:
        r = requests[i]
        last = merged[-1] if merged else None
        if last is not None and last.path == r.path and last.length is not None and r.length is not None:
            end = last.offset + last.length
            if r.offset <= end + gap:
                merged[-1] = RangeRequest(last.path, last.offset, max(end, r.offset + r.length) - last.offset)
                members[-1].append(i)
                continue
        merged.append(r)
        members.append([i])
    out: list[bytes | memoryview] = [b""] * len(requests)
    for whole, data, owned in zip(merged, fetch(merged), members, strict=True):
        for i in owned:
            r = requests[i]
            if len(owned) == 1:
                out[i] = data
            else:
                start = r.offset - whole.offset
                out[i] = memoryview(data)[start : start + (r.length or 0)]
    return out
