"""Run the Python examples of pages and docstrings, as somebody would paste them.

`python .ci/snippets.py README.md docs src` runs the examples of these files and of all files in these folders. The
blocks of a page that are marked `python` run in their order and share their names, in an empty folder. Blocks marked
`py` are pieces of larger programs; they have to be Python, and are not run. In modules, the examples of docstrings are
run by doctest, and their output is compared. A section of a page that needs a library that is not installed is left
out, and that is printed.

A release runs the README where its wheel is installed and nothing else, so that what people paste first works:
`--section Example` runs only the sections with these titles.
"""

import argparse
import ast
import contextlib
import doctest
import importlib
import importlib.util
import io
import multiprocessing
import os
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Files after which the processes that run them are replaced.
FILES_AT_ONCE = 12
BLOCK = re.compile(r"^```(python|py)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
#: Tutorials are notebooks: they run when the site is built.
NOTEBOOK = re.compile(r"\A---\n.*?^(file_format: mystnb| +format_name: myst)$", flags=re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A block of code: its section, its line in the page, and whether it is a piece that is not run."""

    section: str
    line: int
    code: str
    piece: bool


@dataclass(frozen=True)
class Outcome:
    """What came of the examples of a file: how many ran, how long they took, what was left out and what failed."""

    path: str
    count: int
    seconds: float
    left_out: tuple[str, ...] = ()
    failure: str = ""


def sections(page: str) -> Iterator[tuple[str, int, str]]:
    """Yield the title, the offset and the text of every section of a page; before the first, the title is empty."""
    heads = [*re.finditer(r"^## (.+?)$", page, flags=re.MULTILINE)]
    starts = [0, *(head.start() for head in heads)]
    titles = ["", *(head.group(1) for head in heads)]
    for title, start, end in zip(titles, starts, [*starts[1:], len(page)], strict=True):
        yield title, start, page[start:end]


def blocks(page: str, titles: Collection[str] = ()) -> list[Block]:
    """Return the blocks of Python code of a page, or of its sections with these titles."""
    unknown = set(titles) - {title for title, _, _ in sections(page)}
    if unknown:
        raise ValueError(f"expected titles of sections; got {sorted(unknown)}, which the page does not have.")
    return [
        Block(title, page.count("\n", 0, start + found.start(2)) + 1, found[2], found[1] == "py")
        for title, start, text in sections(page)
        for found in BLOCK.finditer(text)
        if not titles or title in titles
    ]


def missing_libraries(code: str) -> set[str]:
    """Return the libraries that code imports and that are not installed."""
    nodes = [*ast.walk(ast.parse(code))]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    return {top for top in (name.partition(".")[0] for name in names) if importlib.util.find_spec(top) is None}


def run_page(path: Path, titles: Collection[str] = ()) -> Outcome:
    """Run the blocks of a page, in a folder of its own."""
    found = blocks(path.read_text(encoding="utf-8"), titles)
    missing = {block.section: lacking for block in found if (lacking := missing_libraries(block.code))}
    to_run = [block for block in found if not block.piece and block.section not in missing]
    left_out = tuple(f"{section} (needs {', '.join(sorted(names))})" for section, names in missing.items())
    start, names = time.perf_counter(), {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        failure = _failure_of(to_run, path, names)
    return Outcome(str(path), len(to_run), time.perf_counter() - start, left_out, failure)


def _failure_of(to_run: Iterable[Block], path: Path, names: dict[str, object]) -> str:
    """Run blocks one after the other, and return what the first that fails says, with the line of the page."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        for block in to_run:
            try:
                exec(compile("\n" * (block.line - 1) + block.code, str(path), "exec"), names)
            except Exception:
                return traceback.format_exc()
    return ""


def run_docstrings(path: Path) -> Outcome:
    """Run the examples in the docstrings of a module, and compare what they print."""
    inside = path.with_suffix("").parts
    name = ".".join(inside[len(inside) - inside[::-1].index("src") :]).removesuffix(".__init__")
    start, printed = time.perf_counter(), io.StringIO()
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        return Outcome(str(path), 0, 0.0, (str(error),))
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        failed, count = doctest.testmod(module, optionflags=flags)
    return Outcome(str(path), count, time.perf_counter() - start, failure=printed.getvalue() if failed else "")


def run(path: Path, titles: Collection[str] = ()) -> Outcome:
    """Run the examples of a page or of a module."""
    return run_docstrings(path) if path.suffix == ".py" else run_page(path, titles)


def files(paths: Iterable[Path]) -> list[Path]:
    """Return the files with examples among these files and in these folders."""
    inside = [path for given in paths for path in (sorted(given.rglob("*.*")) if given.is_dir() else [given])]
    return [path.resolve() for path in inside if _has_examples(path)]


def _has_examples(path: Path) -> bool:
    """Return whether a file is a page with blocks of Python, or a module with examples in its docstrings."""
    if path.suffix not in (".md", ".py"):
        return False
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return re.search(r"^ +>>> ", text, flags=re.MULTILINE) is not None
    return BLOCK.search(text) is not None and not NOTEBOOK.match(text)


def main(arguments: list[str]) -> int:
    """Run examples and print what came of them; 1 if any failed."""
    parser = argparse.ArgumentParser(description="Run the Python examples of pages and docstrings.")
    parser.add_argument("paths", nargs="+", type=Path, help="pages, modules, and folders of them")
    parser.add_argument("--section", action="append", default=[], help="run only the sections with these titles")
    parser.add_argument("--processes", type=int, default=1, help="run so many files at a time")
    given = parser.parse_args(arguments)
    todo = files(given.paths)
    if not todo:
        parser.error(f"expected files with examples; found none in {[str(path) for path in given.paths]}.")
    if given.processes == 1:
        outcomes: Iterable[Outcome] = (run(path, given.section) for path in todo)
        return _report(outcomes)
    return _report(_side_by_side(todo, given.processes))


def _side_by_side(todo: list[Path], processes: int) -> Iterator[Outcome]:
    """Yield what came of the files, run in so many processes.

    They are new ones after every few files: one that compiles programs without end meets a limit of the system. The
    pool's own way to renew its processes (`max_tasks_per_child`) can wait for ever in Python 3.11.
    """
    context = multiprocessing.get_context("spawn")
    for start in range(0, len(todo), FILES_AT_ONCE):
        with ProcessPoolExecutor(processes, mp_context=context) as pool:
            yield from pool.map(run, todo[start : start + FILES_AT_ONCE])


def _report(outcomes: Iterable[Outcome]) -> int:
    """Print a line for every file as it ends, and return 1 if examples of any failed."""
    failed = []
    for outcome in outcomes:
        name = os.path.relpath(outcome.path, ROOT)
        left_out = "".join(f"; left out: {what}" for what in outcome.left_out)
        print(f"{name}: {outcome.count} examples, {outcome.seconds:.1f} s{left_out}", flush=True)
        if outcome.failure:
            failed.append(name)
            print(outcome.failure, flush=True)
    print(f"Examples of {', '.join(failed)} failed." if failed else "All examples ran.")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
