"""The program: reads the arguments, runs a command, prints its result and returns the exit code.

Results go to stdout, and everything else (progress, notes, errors) to stderr. With `--json`, the result or the error is
one JSON object on stdout.
"""

import argparse
import json
import math
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from metaprior import __version__
from metaprior.cli.command import Command, all_commands, check_installed
from metaprior.cli.result import FieldedError, UsageError

#: Exit codes: success, a problem with the data or a file, a command that was not understood, and Ctrl-C.
FINE, PROBLEM, USAGE, INTERRUPTED = 0, 1, 2, 130
#: Exceptions that are reported in one line. Any other is a bug of the program and shows its traceback.
PROBLEMS = (ValueError, TypeError, OSError, ImportError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    arguments : sequence of str, default=None
        The words after `metaprior`. None takes them from the command line.

    Returns
    -------
    int
        0 for success, 1 for a problem with the data or a file, 2 for a command that was not understood, 130 for Ctrl-C.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    as_json = "--json" in words
    try:
        args = _parsed(words)
        with _notes(args.quiet):
            result = args.run(args)
        return _printed(_json(result.data) if as_json else result.text)
    except UsageError as error:
        return _failed(error, USAGE, as_json)
    except PROBLEMS as error:
        return _failed(error, PROBLEM, as_json)
    except KeyboardInterrupt:
        return INTERRUPTED


# --- the arguments ------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are exceptions."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} ('{self.prog} --help' shows the options)")


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    for name in [word for word in words if not word.startswith("-")][:1]:
        check_installed(name)
    return _parser().parse_args(words)


def _parser() -> _Parser:
    parser = _Parser(
        prog="metaprior",
        description="Bayesian neural networks whose weight prior is a Gaussian process, for tables.",
        epilog="exit codes: 0 success, 1 a problem with the data or a file, 2 a command that was not understood",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"metaprior {__version__}")
    group = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Parser)
    for name, command in all_commands().items():
        _add_command(group, name, command)
    return parser


def _add_command(group: Any, name: str, command: Command) -> None:
    added = group.add_parser(
        name,
        help=command.SUMMARY,
        description=f"{command.SUMMARY[0].upper()}{command.SUMMARY[1:]}.",
        epilog=f"examples:\n{command.EXAMPLES.rstrip()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.configure(added)
    added.add_argument("--json", action="store_true", help="print the result, or an error, as JSON on stdout")
    added.add_argument("--quiet", action="store_true", help="print no progress and no notes on stderr")
    added.set_defaults(run=command.run)


# --- what is printed ------------------------------------------------------------------


@contextmanager
def _notes(quiet: bool) -> Iterator[None]:
    """Print warnings as notes on stderr, one per line, or none if quiet."""

    def show(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        if not quiet:
            print(f"note: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def _printed(text: str) -> int:
    """Print a result. It is not an error if the reader has closed the pipe, as `head` does."""
    try:
        print(text, end="" if text.endswith("\n") else "\n", flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FINE


def _failed(error: Exception, code: int, as_json: bool) -> int:
    """Print an error and return the exit code."""
    if as_json:
        fields = error.fields() if isinstance(error, FieldedError) else {}
        print(_json({"error": {"type": type(error).__name__, "message": str(error), **fields}}))
    else:
        print(f"metaprior: {error}", file=sys.stderr)
    return code


def _json(data: dict[str, Any]) -> str:
    return json.dumps(_plain(data), indent=2, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    """Return what JSON can hold: NumPy's numbers become Python's, and numbers that are not finite become null."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
