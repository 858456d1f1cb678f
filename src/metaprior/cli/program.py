"""The program: reads the arguments, runs a command, prints its result and returns the exit code.

Results go to stdout, and everything else (progress, notes, errors) to stderr. With `--json`, the result or the error is
one JSON object on stdout, in UTF-8.
"""

import argparse
import contextlib
import json
import math
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from metaprior import __version__
from metaprior.cli.command import Command, all_commands, check_installed
from metaprior.cli.result import FieldedError, ListedError, UsageError
from metaprior.cli.stopping import Stop, stop_by_signals
from metaprior.cli.streams import (
    ReaderGone,
    StdoutError,
    check_stdout,
    one_line,
    printable,
    steady_streams,
    write_stdout,
)

#: Exit codes: success, a problem with the data or a file, a command that was not understood, and a reader of the result
#: that left before its end, as for a program that SIGPIPE ends. Ctrl-C gives 130 and SIGTERM 143 (`Stop.code`).
FINE, PROBLEM, USAGE, READER_GONE = 0, 1, 2, 141
#: Exceptions that are reported in one line. Any other is a bug of the program and shows its traceback.
PROBLEMS = (ValueError, TypeError, OSError, ImportError, MemoryError, RecursionError, OverflowError)

#: How a RuntimeError of JAX says that there is not enough memory.
NO_MEMORY = "RESOURCE_EXHAUSTED"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    arguments : sequence of str, default=None
        The words after `metaprior`. None takes them from the command line.

    Returns
    -------
    int
        0 for success, 1 for a problem with the data or a file, 2 for a command that was not understood, 130 for Ctrl-C,
        143 for SIGTERM, 141 if the reader of the result left before its end.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    as_json = "--json" in words
    with steady_streams(), stop_by_signals(own_process=arguments is None) as stop:
        code = _code_of(words, as_json, stop)
    if stop.came:
        stop.leave(code)
    return code


def _code_of(words: Sequence[str], as_json: bool, stop: Stop) -> int:
    """Run a command, print its result or what went wrong, and return the exit code."""
    try:
        _run(words, as_json)
        return FINE
    except ReaderGone:
        return READER_GONE
    except UsageError as error:
        return _failed(error, USAGE, as_json)
    except PROBLEMS as error:
        return _failed(error, PROBLEM, as_json)
    except RuntimeError as error:
        if NO_MEMORY not in str(error):
            raise
        return _failed(MemoryError(str(error)), PROBLEM, as_json)
    except KeyboardInterrupt:
        return _failed(KeyboardInterrupt(str(stop)), stop.code, as_json)


def _run(words: Sequence[str], as_json: bool) -> None:
    """Run a command and print its result."""
    check_stdout()
    args = _parsed(words)
    with _notes(args.quiet):
        result = args.run(args)
    if as_json:
        write_stdout(_json(result.data))
    elif isinstance(result.text, bytes):
        write_stdout(result.text)
    else:
        write_stdout(printable(result.text).removesuffix("\n") + "\n")


# --- the arguments ------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are exceptions."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} ('{self.prog} --help' shows the options)")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print the help or the version; argparse itself would hide that this failed."""
        write_stdout(message)


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    for name in [word for word in words if not word.startswith("-")][:1]:
        check_installed(name)
    return _parser().parse_args(words)


def _parser() -> _Parser:
    parser = _Parser(
        prog="metaprior",
        description="Bayesian neural networks whose weight prior is a Gaussian process, for tables.",
        epilog="exit codes: 0 success, 1 a problem with the data or a file, 2 a command that was not understood, "
        "130 stopped by Ctrl-C, 143 stopped by SIGTERM, 141 the reader of the result left before its end",
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


@contextlib.contextmanager
def _notes(quiet: bool) -> Iterator[None]:
    """Print warnings as notes on stderr, one per line and each once, or none if quiet."""
    seen: set[str] = set()

    def show(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        note = one_line(str(message))
        if not quiet and note not in seen:
            seen.add(note)
            print(f"note: {note}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def _failed(error: BaseException, code: int, as_json: bool) -> int:
    """Print an error, in one line or as JSON, and return the exit code."""
    if as_json and not isinstance(error, StdoutError):
        fields = error.fields() if isinstance(error, FieldedError) else {}
        with contextlib.suppress(ReaderGone, StdoutError):
            write_stdout(_json({"error": {"type": type(error).__name__, "message": _message(error), **fields}}))
            return code
    lines = [error.message, *error.parts] if isinstance(error, ListedError) else [_message(error)]
    print("metaprior: " + "\n  ".join(map(one_line, lines)), file=sys.stderr)
    return code


def _message(error: BaseException) -> str:
    """Return what an error says, without the number that Python puts before errors of the system."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        detail = f" ({error})" if str(error) else ""
        return f"there is not enough memory{detail}; use fewer rows or a smaller network."
    return str(error) or type(error).__name__


def _json(data: dict[str, Any]) -> bytes:
    """Return JSON in UTF-8. Bytes in the name of a file that are not UTF-8 are written as escapes of JSON."""
    text = json.dumps(_plain(data), indent=2, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode("utf-8", "backslashreplace")


def _plain(value: Any) -> Any:
    """Return what JSON can hold.

    NumPy's numbers become Python's, numbers that are not finite and missing values become null, and dates and other
    values become text.
    """
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    text = value.isoformat() if hasattr(value, "isoformat") else str(value)
    return None if text in ("NaT", "<NA>") else text  # what pandas calls a missing date, or a missing value
