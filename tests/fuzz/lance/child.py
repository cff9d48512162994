"""The process that reads damaged files: ``python -m tests.fuzz.lance.child SEED INPUTS FOLDER [MODULES]``.

It prints how many inputs of each version were rejected, and how much its memory grew. The input at hand is in FOLDER,
so that one that ends the process can be read again.
"""

from __future__ import annotations

import random
import resource
import sys
from pathlib import Path


def main(seed: int, inputs: int, folder: Path, modules: str = "") -> None:
    """Read damaged files of each version; ``modules`` is a folder with other builds of the kernels."""
    if modules:
        import delta_plugins.lance

        delta_plugins.lance.__path__.insert(0, modules)
    from tests.fuzz.lance.reading import check_together, read_damaged
    from tests.fuzz.lance.seeds import VERSIONS, damaged, seeds

    for version in VERSIONS:
        name, found = ".".join(map(str, version)), seeds(version)
        choose = random.Random(f"{seed} {version}")
        rejected = 0
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        sound = folder / "sound"
        sound.mkdir(exist_ok=True)
        for i, (data, *_) in enumerate(found):
            (sound / f"{name}-{i}.lance").write_bytes(data)
        for _ in range(inputs if found else 0):
            i = choose.randrange(len(found))
            data, fields, columns, spelled = found[i]
            made = damaged(data, choose, choose.choice(found)[0])
            (folder / "input.lance").write_bytes(made)
            paths = [sound / f"{name}-{i}.lance", folder / "input.lance"]
            is_rejected = read_damaged(made, fields, columns, spelled)
            check_together(fields, columns, spelled, paths, is_rejected)
            rejected += is_rejected
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
        print(
            f"{name}: {inputs if found else 0} inputs of {len(found)} files, {rejected} rejected, {grown} MB",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), *sys.argv[4:])
