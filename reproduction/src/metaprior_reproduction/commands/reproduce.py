"""`metaprior reproduce`: computes, saves, judges and draws figures and tables of the paper."""

import argparse
import os
from typing import TYPE_CHECKING, Any

from metaprior.cli.result import ListedError, Result, UsageError, counted

if TYPE_CHECKING:
    from metaprior_reproduction.frame.running import Failure, Reproduced

SUMMARY = "reproduce figures and tables of the paper, or resume where a run was stopped"
EXAMPLES = """\
  metaprior reproduce --list
  metaprior reproduce sinusoid --preset smoke
  metaprior reproduce sinusoid mnist-ood --preset paper --seeds 5 --out results --jobs 2
  metaprior reproduce all --preset smoke --out smoke && metaprior report smoke
"""


class RunsFailedError(ListedError):
    """Some runs raised an error; the others are kept."""

    def __init__(self, reproduced: "Reproduced") -> None:
        self.reproduced = reproduced
        by_error: dict[str, list[str]] = {}
        for failure in reproduced.failures:
            by_error.setdefault(failure.error, []).append(failure.what)
        lines = [f"{'; '.join(whats)}: {error}" for error, whats in by_error.items()]
        complete = ", ".join(result["id"] for result in reproduced.results) or "none"
        super().__init__(
            f"{len(reproduced.failures)} failed; all other runs are kept, and the same command tries these again. "
            f"Complete items: {complete}. Failed:",
            lines,
        )

    def fields(self) -> dict[str, Any]:
        """Return what failed and what is complete, for JSON."""
        return {
            "failures": [_failure(failure) for failure in self.reproduced.failures],
            "complete": [result["id"] for result in self.reproduced.results],
        }


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("items", nargs="*", metavar="ITEM", help="ids of items, or all")
    parser.add_argument("--list", action="store_true", help="show the items and what they claim")
    parser.add_argument(
        "--preset",
        choices=("smoke", "paper"),
        default="smoke",
        help="smoke: sizes that take seconds (default); paper: the paper's sizes and repeats, up to hours",
    )
    parser.add_argument("--seeds", type=_whole, metavar="K", help="how many seeds; default: the preset's")
    parser.add_argument(
        "--out", metavar="DIR", help="the folder of the results, created if needed; default: reproduced-PRESET"
    )
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="J", help="how many processes; -1: one per core; default: 1"
    )
    parser.add_argument(
        "--force", action="store_true", help="delete the files of these items in the folder and start them anew"
    )


def run(args: argparse.Namespace) -> Result:
    """Compute the missing runs and summarise the results."""
    from metaprior_reproduction import items

    if args.list:
        return _listed()
    names = _names(args.items, items.names())
    out = args.out or f"reproduced-{args.preset}"
    os.environ.setdefault("MPLBACKEND", "agg")  # figures go to files; no window is needed
    from metaprior_reproduction.frame.running import reproduce

    reproduced = reproduce(
        names, args.preset, out, seeds=args.seeds, jobs=args.jobs, force=args.force, quiet=args.quiet
    )
    if reproduced.failures:
        raise RunsFailedError(reproduced)
    data = {"out": out, "items": [_item(result) for result in reproduced.results]}
    return Result(data, _text(out, reproduced.results))


def _names(asked: list[str], known: list[str]) -> list[str]:
    """Return the ids that were asked for."""
    if not asked:
        raise UsageError("expected the id of an item, or all; 'metaprior reproduce --list' shows them")
    unknown = [name for name in asked if name not in (*known, "all")]
    if unknown:
        raise UsageError(f"there is no item {unknown[0]!r}; expected all, or some of {', '.join(known)}")
    return known if "all" in asked else asked


def _listed() -> Result:
    from metaprior_reproduction import items

    found = {name: items.item_named(name) for name in items.names()}
    data = {"items": [{"id": name, "title": item.title, "claim": item.claim} for name, item in found.items()]}
    text = "\n\n".join(f"{one['id']}: {one['title']}\n  {' '.join(one['claim'].split())}" for one in data["items"])
    return Result(data, text)


def _item(result: dict[str, Any]) -> dict[str, Any]:
    return {name: result[name] for name in ("id", "preset", "seconds", "rows", "verdicts")}


def _failure(failure: "Failure") -> dict[str, str]:
    return {"item": failure.id, "what": failure.what, "error": failure.error}


def _text(out: str, results: list[dict[str, Any]]) -> str:
    from metaprior_reproduction.frame.progress import duration

    lines = []
    for result in results:
        size = f"{result['preset']}, {counted(result['config']['seeds'], 'seed')}, {duration(result['seconds'])}"
        lines += [f"{result['id']} ({size}): {result['title']}"]
        for verdict in result["verdicts"]:
            lines += [f"  {verdict['outcome']:<6}  {verdict['claim']}", f"          {verdict['evidence']}"]
            lines += [f"          whose method: {verdict['whose']}"] * (verdict["whose"] != "ours")
            lines += [f"          cause: {verdict['cause']}"] * bool(verdict["cause"])
    return "\n".join([*lines, f"Results are in {out}; 'metaprior report {out}' makes a page of them."])


def _whole(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number, at least 1; got {text!r}")
    return int(text)
