"""``profile``: a flame graph of one case, Python and native frames, and the counters of the library.

``python -m benchmarks.profile NAME TABLE SMALL`` prints the counters of one run as JSON; ``profile_case`` runs it, and
py-spy on `benchmarks.child`.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.child import peak_mb, processor_seconds
from benchmarks.run import ROOT

__all__ = ["counters", "format_counters", "profile_case"]

#: How long the work is repeated under the profiler, in seconds, so that imports are a small part.
SECONDS = 5.0
SAMPLES_A_SECOND = 400
_STORAGE = ("list_from", "read", "open", "stat", "put", "put_if_absent", "create", "put_stream", "delete", "walk")


def profile_case(name: str, table: Path, small: Path, output: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Write the flame graph of a case and return its counters; exit with a message without py-spy."""
    profiler = shutil.which("py-spy", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    if profiler is None:
        sys.exit('profile needs py-spy: pip install -e ".[bench]"')
    found = _counted(name, table, small)
    loops = max(1, min(1_000, round(SECONDS / max(found["seconds"], 1e-3))))
    say(f"{name}: {loops} runs under py-spy")
    command = [profiler, "record", "--rate", str(SAMPLES_A_SECOND), "--threads"]
    if sys.platform == "linux":  # elsewhere py-spy has no native frames of such modules
        command.append("--native")
    child = [sys.executable, "-m", "benchmarks.child", "ours", name, str(table), str(small), str(loops)]
    done = subprocess.run(
        [*command, "-o", str(output), "--", *child], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if not output.exists():
        sys.exit(f"py-spy wrote no flame graph: {(done.stderr or done.stdout).strip()[-400:]}")
    return found


def _counted(name: str, table: Path, small: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.profile", name, str(table), str(small)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name} failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def counters(work: Callable[[], Any]) -> dict[str, Any]:
    """Run work once and return what it did.

    Returns
    -------
    dict
        ``seconds``, ``cpu`` and ``peak_mb``; ``hooks``: calls by hook; ``storage``: calls by method; ``read_bytes`` and
        ``read_calls`` of the process to the system, ``waits`` (how often a thread slept until something was there) and
        ``page_faults``, where the system has them; ``scans``: the `RunReport` of each scan that was read, which
        is read again for it.
    """
    from delta_core.kernel.plugins.registry import PluginSet
    from delta_core.kernel.scan.scan import Scan
    from delta_core.storage.local import LocalStorage
    from delta_core.storage.remote import FsspecStorage

    hooks, storage, scans = Counter[str](), Counter[str](), list[Any]()
    undo = [_counting(PluginSet, "_call", lambda self, hook, *a: hooks.update([hook]))]
    for kind in (LocalStorage, FsspecStorage):
        undo += [
            _counting(kind, method, lambda self, *a, _m=method: storage.update([_m]))
            for method in _STORAGE
            if hasattr(kind, method)
        ]
    undo += [_counting(Scan, m, lambda self, *a: scans.append(self)) for m in ("to_reader", "to_table", "count")]
    before, io = resource.getrusage(resource.RUSAGE_SELF), _system_reads()
    start, used = time.perf_counter(), processor_seconds()
    try:
        work()
    finally:
        for restore in undo:
            restore()
    found: dict[str, Any] = {"seconds": time.perf_counter() - start, "cpu": processor_seconds() - used}
    after, io_after = resource.getrusage(resource.RUSAGE_SELF), _system_reads()
    found |= {"peak_mb": peak_mb(), "hooks": dict(hooks), "storage": dict(storage)}
    found |= {key: io_after[key] - io[key] for key in io}
    found |= {"waits": after.ru_nvcsw - before.ru_nvcsw, "page_faults": after.ru_minflt - before.ru_minflt}
    found["scans"] = [_report(scan) for scan in scans[:3]]
    return found


def _counting(kind: type, method: str, count: Callable[..., Any]) -> Callable[[], None]:
    own = getattr(kind, method)

    def counted(self: Any, *arguments: Any, **named: Any) -> Any:
        count(self, *arguments)
        return own(self, *arguments, **named)

    is_inherited = method not in vars(kind)
    setattr(kind, method, counted)
    return lambda: delattr(kind, method) if is_inherited else setattr(kind, method, own)


def _report(scan: Any) -> dict[str, float]:
    run = scan.explain(run=True).run
    return {name: getattr(run, name) for name in type(run).__struct_fields__}


def _system_reads() -> dict[str, int]:
    path = Path("/proc/self/io")
    if not path.exists():
        return {}
    made = dict(line.split(": ") for line in path.read_text().splitlines())
    return {"read_bytes": int(made["rchar"]), "read_calls": int(made["syscr"])}


def format_counters(found: dict[str, Any]) -> str:
    """Return counters as lines of text."""
    times = f"{found['seconds'] * 1_000:,.3g} ms, {found['cpu'] * 1_000:,.3g} ms of the processor"
    names = [n for n in ("read_bytes", "read_calls", "waits", "page_faults") if n in found]
    lines = [f"{times}, {found['peak_mb']:.0f} MB at most"]
    lines += [f"{name.replace('_', ' '):14}{found[name]:>14,}" for name in names]
    for name in ("hooks", "storage"):
        calls = found[name]
        listed = ", ".join(f"{key} {n}" for key, n in sorted(calls.items(), key=lambda each: -each[1]))
        lines.append(f"{name + ' calls':14}{sum(calls.values()):>14,}  {listed}")
    for n, scan in enumerate(found["scans"], 1):
        lines.append(f"scan {n}: " + ", ".join(f"{key} {value:,.4g}" for key, value in scan.items()))
    return "\n".join(lines)


def main() -> None:
    """Print the counters of one case."""
    name, table, small = sys.argv[1:]
    work = getattr(importlib.import_module("benchmarks.ours"), name)(Path(table), Path(small))
    print(json.dumps(counters(work)))


if __name__ == "__main__":
    main()
