"""Commands in processes of their own, with streams that are closed, full or of another encoding, and hostile files.

No case names a device as an output: a command that replaced it would take it from the whole machine.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

#: A fit that takes a moment.
QUICK = (
    "--hidden",
    "2",
    "--n-inducing",
    "3",
    "--max-iter",
    "10",
    "--set",
    "n_predict_draws=8",
    "--input-kernel",
    "rbf",
)
ROWS = 12
#: A table whose names and texts are not ASCII, with texts that a spreadsheet would run.
TABLE = "größe,färbe,id,preis\n" + "".join(
    f"{number},{'rot' if number % 3 else '青'},{['=1+1', '-7', 'plain'][number % 3]},{number * number / 7}\n"
    for number in range(ROWS)
)
FIT = ("fit", "t.csv", "--target", "preis", "--out", "m.metaprior", *QUICK)
#: Settings of Python under which text is ASCII, and its usual behaviour in the C locale.
ASCII = {"PYTHONIOENCODING": "ascii"}
C_LOCALE = {"LC_ALL": "C", "LANG": "C", "PYTHONIOENCODING": ""}
STRICT_C_LOCALE = {**C_LOCALE, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


class Run(NamedTuple):
    """How a command ended."""

    code: int
    out: bytes
    err: str


def arguments(*words: str | bytes | Path, redirect: str = "", limit: int | None = None) -> list[str | bytes]:
    """Return the words that start a command, through a shell that redirects its streams or limits its memory."""
    program = [sys.executable, "-m", "metaprior", *(os.fspath(word) for word in words)]
    limited = "" if limit is None else f"ulimit -v {limit}; "
    return ["sh", "-c", f'{limited}exec "$@" {redirect}', "sh", *program] if redirect or limited else program


def run_command(
    *words: str | bytes | Path,
    folder: Path,
    redirect: str = "",
    stdin: bytes = b"",
    env: dict[str, str] | None = None,
    limit: int | None = None,
) -> Run:
    """Run a command in a folder.

    `redirect` is what a shell would be given, such as `>&-`; `limit` is the most memory, in KiB of addresses.
    """
    ran = subprocess.run(
        arguments(*words, redirect=redirect, limit=limit),
        input=stdin,
        capture_output=True,
        cwd=folder,
        env={**os.environ, **(env or {})},
        timeout=120,
    )
    return Run(ran.returncode, ran.stdout, ran.stderr.decode("utf-8", "backslashreplace"))


def run_unread(*words: str | Path, folder: Path) -> Run:
    """Run a command whose output nobody reads: the pipe is closed before anything is written."""
    process = subprocess.Popen(arguments(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    err = process.stderr.read().decode()
    process.stderr.close()
    return Run(process.wait(timeout=120), b"", err)


def assert_one_line(ran: Run, code: int, *parts: str) -> None:
    """Assert that a command failed with a code and one printable line on stderr, and printed nothing."""
    assert (ran.code, ran.out) == (code, b""), ran
    lines = ran.err.split("\n")
    assert len(lines) == 2, ran.err
    assert lines[0].startswith("metaprior: ")
    assert lines[0].isprintable()
    assert lines[1] == ""
    for part in parts:
        assert part in ran.err
