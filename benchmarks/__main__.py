"""Measure rows, each in its own process, and write results.json and docs/performance.md."""

import argparse
import importlib
import json
import pkgutil
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import rows
from benchmarks.measure import Row, machine
from benchmarks.report import write_page

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results.json"
PAGE = FOLDER.parent / "docs" / "performance.md"


def names() -> list[str]:
    """Return the names of all rows, which are the names of their files."""
    return sorted(module.name for module in pkgutil.iter_modules(rows.__path__))


def measured(name: str) -> dict:
    """Measure a row in a fresh process, which shares no memory or compiled programs with others."""
    command = [sys.executable, "-m", "benchmarks", "--row", name]
    done = subprocess.run(command, cwd=FOLDER.parent, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{name}: failed with exit code {done.returncode}; see its message above.")
    return {"name": name, **json.loads(done.stdout.splitlines()[-1]), "measured on": time.strftime("%Y-%m-%d")}


def main() -> None:
    """Measure the rows that are asked for, and keep the earlier results of the others."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"rows to measure (default: all): {', '.join(names())}")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.row:
        row: Row = importlib.import_module(f"benchmarks.rows.{asked.row}").measure()
        print(json.dumps(row.as_json()))
        return
    unknown = set(asked.names) - set(names())
    if unknown:
        parser.error(f"unknown rows {sorted(unknown)}; expected some of {names()}")
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() and asked.names else {"rows": []}
    kept = {row["name"]: row for row in known["rows"]}
    for name in asked.names or names():
        print(f"{name} ...", file=sys.stderr, flush=True)
        kept[name] = measured(name)
        print(f"  {kept[name]['ratio']:.3g} (bar {kept[name]['bar']})", file=sys.stderr, flush=True)
        result = {"machine": known.get("machine", {}), "rows": [kept[key] for key in sorted(kept)]}
        RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    RESULTS.write_text(json.dumps({**result, "machine": machine()}, indent=1) + "\n")
    write_page(json.loads(RESULTS.read_text()), PAGE)
    if not all(row["holds"] for row in result["rows"]):
        raise SystemExit("some targets are not met; see the table in docs/performance.md")


if __name__ == "__main__":
    main()
