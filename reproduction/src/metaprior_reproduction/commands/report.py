"""`metaprior report`: one page of results."""

import argparse
from pathlib import Path

from metaprior.cli.options import check_output
from metaprior.cli.result import Result, UsageError, counted

SUMMARY = "make one page of the results of 'metaprior reproduce'"
EXAMPLES = """\
  metaprior report reproduced-smoke
  metaprior report reproduction/results --out reproduction.html --force
  metaprior report reproduction/results --markdown docs/reproduction.md --note reproduction/results/note.md --force
  metaprior report reproduction/results --summary docs/results.md --note reproduction/results/note.md --force
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("folder", metavar="DIR", help="a folder of results, as 'metaprior reproduce --out DIR' fills")
    parser.add_argument("--out", metavar="FILE", help="the HTML page, with its figures; default: DIR/report.html")
    parser.add_argument(
        "--markdown",
        metavar="FILE",
        help="a Markdown page instead, with links to the figures in DIR",
    )
    parser.add_argument(
        "--summary", metavar="FILE", help="a short Markdown page instead, with one section per question"
    )
    parser.add_argument("--note", metavar="NOTE", help="a file of your own for the top of the Markdown page, as it is")
    parser.add_argument("--force", action="store_true", help="overwrite FILE if it exists")


def run(args: argparse.Namespace) -> Result:
    """Read the results and write the page."""
    from metaprior_reproduction.report import counts_text, html, markdown, read_entries, summary, tally

    if len([kind for kind in (args.out, args.markdown, args.summary) if kind]) > 1:
        raise UsageError("--out, --markdown and --summary: expected one of them; got several")
    if args.note and not (args.markdown or args.summary):
        raise UsageError("--note: expected --markdown FILE or --summary FILE too, because a note is Markdown")
    entries = read_entries(Path(args.folder))
    target = Path(args.markdown or args.summary or args.out or Path(args.folder) / "report.html")
    check_output(argparse.Namespace(out=target, force=args.force))
    note = Path(args.note).read_text(encoding="utf-8") if args.note else ""
    if args.summary:
        page = summary.page(entries, Path(args.folder), target.parent, note)
    else:
        page = markdown.page(entries, target.parent, note) if args.markdown else html.page(entries)
    _write(target, page)
    counts = tally(entries)
    data = {"page": str(target), "items": [entry.id for entry in entries], "verdicts": counts}
    return Result(data, f"{target}: {counted(len(entries), 'item')}, verdicts: {counts_text(counts)}")


def _write(target: Path, page: str) -> None:
    from metaprior.io.atomic import write_atomically

    write_atomically(target, page.encode())
