"""Record deltalake's answers, or compare this library's with them.

``python -m tests.interop.deltalake_surface record`` runs the real package, ``compare [PATTERN]`` this library, and
``show PATTERN`` prints both answers of the scripts whose names match.
"""

from __future__ import annotations

import argparse
import json
import re
import sys

from tests.interop.deltalake_surface import comparing


def main() -> int:
    """Run the command that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tests.interop.deltalake_surface", description=__doc__)
    parser.add_argument("command", choices=("record", "answer", "compare", "show"))
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--sample", type=int, default=1, help="only every n-th script")
    parser.add_argument("--start", type=int, default=0, help="the first of them")
    given = parser.parse_args()
    if given.command == "record":
        print(comparing.record(given.workers, given.pattern))
        return 0
    cells = [c for c in comparing.recorded_cells() if re.search(given.pattern, c.name)][given.start :: given.sample]
    found = comparing.our_answers(cells, given.workers)
    if given.command == "answer":
        json.dump(found, sys.stdout)
        return 0
    theirs = comparing.recorded().answers
    if given.command == "show":
        for name, ours in found.items():
            print(f"--- {name}\ntheirs: {json.dumps(theirs[name])}\nours:   {json.dumps(ours)}")
        return 0
    result = comparing.compare(found)
    print(result.text(theirs, found))
    return 0 if result.is_explained else 1


if __name__ == "__main__":
    sys.exit(main())
