"""Results of strangers: nothing in them becomes part of a page."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import metaprior.cli
import metaprior_reproduction
from hostile_results import (
    ATTACKS,
    Structure,
    attacked,
    good_result,
    markdown_structure,
    outcome,
    places,
    told_in_a_line,
    write_result,
)
from metaprior_reproduction.report import html, markdown, read_entries
from peak_memory import measured, needs_proc

PLACES = list(places(good_result()))
#: What an address is made a link by, where GitHub shows a page.
ADDRESS = re.compile(r"(?<!\\)://|www\.|(?<!\\)@", re.IGNORECASE)


#: Texts that are no texts: they are refused wherever they stand.
REFUSED = ("colour of a terminal", "title of a terminal", "controls", "nul", "surrogate", "escaped byte")
REFUSED += ("reordered", "line separators", "too long")


def as_text(attack: str) -> str:
    return " ".join(attack.split())


def test_every_field_of_the_form_is_attacked():
    """1,900 attacks and more on each kind of page; a new field adds its own."""
    assert len(PLACES) >= 30
    assert len(PLACES) * len(ATTACKS) >= 1900
    attacked_fields = {path[0] for path in PLACES}
    assert attacked_fields == good_result().keys()


#: A quarter of the places for each attack, another one for the next; the others take longer.
quarters = pytest.mark.parametrize("quarter", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2, 3))])


def chosen(name: str, quarter: int) -> list[tuple]:
    return PLACES[(list(ATTACKS).index(name) + quarter) % 4 :: 4]


@quarters
@pytest.mark.parametrize("name", ATTACKS)
def test_no_text_of_a_result_becomes_html(name, quarter, tmp_path):
    attack = ATTACKS[name]
    plain, _ = outcome(tmp_path, good_result(), html.page)
    expected, shown = Structure(plain).parts, 0
    for path in chosen(name, quarter):
        page, error = outcome(tmp_path, attacked(good_result(), path, attack), html.page)
        if error:
            assert told_in_a_line(error), (path, error)
            continue
        shown += 1
        found = Structure(page)
        assert found.parts == expected, path
        if path[0] not in ("runs", "config"):  # runs are not shown, and a configuration is shown as JSON
            assert as_text(attack) in as_text(found.text), path
    assert shown > 2 or name in REFUSED


@quarters
@pytest.mark.parametrize("name", ATTACKS)
def test_no_text_of_a_result_becomes_markdown(name, quarter, tmp_path):
    attack, shown = ATTACKS[name], 0
    plain, _ = outcome(tmp_path, good_result(), lambda entries: markdown.page(entries, tmp_path))
    expected = markdown_structure(plain)[0]
    for path in chosen(name, quarter):
        hostile = attacked(good_result(), path, attack)
        page, error = outcome(tmp_path, hostile, lambda entries: markdown.page(entries, tmp_path))
        if error:
            assert told_in_a_line(error), (path, error)
            continue
        shown += 1
        parts, text = markdown_structure(page)
        assert parts == expected, path
        assert ADDRESS.search(page) is None, path
        if path[0] not in ("runs", "config"):
            assert as_text(attack).rstrip(".") in as_text(text), path
    assert shown > 2 or name in REFUSED


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_text_is_refused_everywhere(name, tmp_path):
    for path in PLACES:
        page, error = outcome(tmp_path, attacked(good_result(), path, ATTACKS[name]), html.page)
        assert not page
        assert "expected a complete result of 'metaprior reproduce'" in error


ODD = [None, True, -1, 1.5, 10**400, 1e308, float("nan"), float("inf"), [], {}, [[]], {"a": 1}, "1", [1] * 1000]


@pytest.mark.parametrize("path", [path for path in PLACES if path[-1] is not None], ids=str)
def test_a_value_of_another_kind_is_refused_or_shown_and_nothing_else(path, tmp_path):
    """14 odd values in every place; only errors that say what is wrong leave the program."""
    for value in ODD:
        _, error = outcome(tmp_path, attacked(good_result(), path, value), html.page)
        assert told_in_a_line(error), value


@pytest.mark.parametrize("seeds", ["<b>", "2", 0, -1, True, 2.0, None, [2], 10**30])
def test_the_number_of_seeds_is_a_whole_number(seeds, tmp_path):
    result = good_result()
    result["config"]["seeds"] = seeds
    page, error = outcome(tmp_path, result, html.page)
    if seeds == 10**30:
        assert page  # large, but a whole number
    else:
        assert "config.seeds: expected a whole number, at least 1; got" in error


@pytest.mark.parametrize("outcome_text", ["<b>", "Agrees", "", "agrees\n", None, 1])
def test_outcomes_are_of_a_known_set(outcome_text, tmp_path):
    result = good_result()
    result["verdicts"][0]["outcome"] = outcome_text
    assert "outcome: expected one of agrees, better, worse; got" in outcome(tmp_path, result, html.page)[1]


DAMAGED = {
    "empty": b"",
    "no json": b"{",
    "no mapping": b"[]",
    "text": b'"x"',
    "nested lists": b"[" * 10**6,
    "nested mappings": b'{"a":' * 10**5,
    "no utf-8": b"\xff\xfe{}",
    "long number": b'{"id": ' + b"9" * 10**5 + b"}",
    "other encoding": '{"id": "x"}'.encode("utf-16"),
    "too large": b" " * (2**24 + 1),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_file_that_is_no_result_is_told(name, tmp_path):
    own = write_result(tmp_path, {})
    (own / "result.json").write_bytes(DAMAGED[name])
    with pytest.raises(ValueError, match="expected a complete result of 'metaprior reproduce'") as error:
        read_entries(tmp_path)
    assert told_in_a_line(str(error.value))


@needs_proc
def test_a_small_result_makes_no_large_table(tmp_path):
    result = good_result()
    metric = {"mean": 1.0, "se": 0.1, "n": 1}
    result["rows"] = [{"method": f"m{k}", "metrics": {f"x{k}": metric}} for k in range(20_000)]
    write_result(tmp_path, result)
    code = "from pathlib import Path\nfrom metaprior_reproduction.report import html, read_entries\n"
    found = measured(code + "html.page(read_entries(Path(sys.argv[1])))", tmp_path)
    assert "expected at most 100,000 numbers in a result; 20,001 methods with 20,001 metrics are more" in found.said
    assert found.megabytes < 300


# --- by construction ------------------------------------------------------------------------------

PACKAGE = Path(metaprior_reproduction.__file__).parent
MAKERS = {"Html": "html_elements.py", "Markdown": "marks.py"}
#: The files that make pages, here and in the library's command line.
PAGES = {"html.py", "markdown.py", "contents.py", "figures.py", "marks.py", "html_elements.py", "page.py", "parts.py"}


@pytest.mark.parametrize("made", MAKERS)
def test_safe_text_is_made_in_one_file_only(made):
    """Elsewhere a text cannot be marked as safe, so it is escaped."""
    files = [*PACKAGE.rglob("*.py"), *Path(metaprior.cli.__file__).parent.rglob("*.py")]
    calls = {
        path.name
        for path in files
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in (made, "cast")
    }
    assert calls & PAGES == {MAKERS[made]}


def test_the_command_tells_a_hostile_result_in_a_line(tmp_path):
    result = attacked(good_result(), ("title",), "\x1b[31m<script>")
    write_result(tmp_path, result)
    code = "from metaprior.cli import main; raise SystemExit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "report", str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "title: expected text without control characters" in done.stderr
    assert told_in_a_line(done.stderr.strip())
    assert not (tmp_path / "report.html").exists()
