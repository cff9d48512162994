"""One measurement in a fresh process: ``python -m benchmarks.child MODULE FUNCTION TABLE SMALL LOOPS``."""

from __future__ import annotations

import importlib
import json
import resource
import statistics
import sys
import time
from pathlib import Path


def peak_mb() -> float:
    """Return this process's peak resident memory in MB.

    ``ru_maxrss`` keeps the parent's peak over fork and exec; the kernel's VmHWM does not, if there is one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1_000
    unit = 1_000_000 if sys.platform == "darwin" else 1_000
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main() -> None:
    """Run one case's work and print its figures as JSON."""
    module, function, table, small, loops = sys.argv[1:]
    work = getattr(importlib.import_module(f"benchmarks.{module}"), function)(Path(table), Path(small))
    seconds, answer = [], None
    for _ in range(int(loops)):
        start = time.perf_counter()
        answer = work()
        seconds.append(time.perf_counter() - start)
    peak = peak_mb()
    # an answer that takes work of its own comes as a function
    figures = {"seconds": statistics.median(seconds), "answer": answer() if callable(answer) else answer}
    print(json.dumps(figures | {"peak_mb": peak}))


if __name__ == "__main__":
    main()
