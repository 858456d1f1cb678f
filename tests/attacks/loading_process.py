"""A process that loads files and says what came of each, and how long and how much memory all took: KIND FILES...

KIND is "model", or the kind of a loop. The process loads a small model first, so that what the library needs for itself
is not counted.
"""

import json
import re
import sys
import time
from pathlib import Path

import metaprior
from metaprior.io.saving import load_state, origin

SMALL = Path(__file__).parents[1] / "files" / "earlier" / "map.metaprior"


def peak() -> int:
    """Return the largest resident memory of this process so far, in bytes.

    `getrusage` would not do: what it says begins with the memory of the process that started this one.
    """
    (line,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(line) * 1024


def outcome(kind: str, path: str) -> str:
    """Load a file; say "loaded", or why not."""
    try:
        metaprior.load(path) if kind == "model" else load_state(path, kind)
    except (ValueError, OSError) as error:
        return f"{type(error).__name__}: {error}"
    return "loaded"


def main(kind: str, *paths: str) -> None:
    metaprior.load(SMALL)
    origin(SMALL)
    memory, started = peak(), time.perf_counter()
    found = [outcome(kind, path) for path in paths]
    print(json.dumps({"found": found, "memory": peak() - memory, "seconds": time.perf_counter() - started}))


if __name__ == "__main__":
    main(*sys.argv[1:])
