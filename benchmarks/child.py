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


def processor_seconds() -> float:
    """Return the processor time of all threads, and of child processes that have ended."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def main() -> None:
    """Run one case's work and print its figures as JSON."""
    module, function, table, small, loops = sys.argv[1:]
    work = getattr(importlib.import_module(f"benchmarks.{module}"), function)(Path(table), Path(small))
    seconds, cpu, answer = [], [], None
    for _ in range(int(loops)):
        start, used = time.perf_counter(), processor_seconds()
        answer = work()
        seconds.append(time.perf_counter() - start)
        cpu.append(processor_seconds() - used)
    peak = peak_mb()
    times = {"seconds": statistics.median(seconds), "cpu": statistics.median(cpu)}
    # an answer that takes work of its own comes as a function
    figures = times | {"answer": answer() if callable(answer) else answer}
    print(json.dumps(figures | {"peak_mb": peak}))


if __name__ == "__main__":
    main()
