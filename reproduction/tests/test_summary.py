"""The short page of results: what it shows of stored results, and what it says where there are none."""

from pathlib import Path

import pytest

from metaprior_reproduction import items
from metaprior_reproduction.frame.result import Metric, Result, Row
from metaprior_reproduction.items import item_named
from metaprior_reproduction.report import read_entries, summary
from metaprior_reproduction.report.contents import Entry
from metaprior_reproduction.report.summary import QUESTIONS, Question, Shown

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "reproduction" / "results"
SHOWN = [shown for question in QUESTIONS for shown in question.tables]


def test_the_committed_page_is_made_from_the_committed_results():
    docs, note = ROOT / "docs", (RESULTS / "note.md").read_text()
    expected = summary.page(read_entries(RESULTS), RESULTS, docs, note)
    assert (docs / "results.md").read_text() == expected


@pytest.mark.parametrize("shown", SHOWN, ids=[shown.item for shown in SHOWN])
def test_what_is_shown_is_an_item_with_results_of_the_papers_sizes(shown):
    assert shown.item in items.names()
    assert summary.PRESET in item_named(shown.item).presets


def test_the_page_has_three_figures():
    assert len([shown for shown in SHOWN if shown.figure]) == 3


def stored(item="sinusoid", preset="paper", methods=("one", "two"), **config):
    """A result with the metrics a and b, which are 1.5 and 2.5 for the first method."""
    metrics = [{"a": Metric(1.5 + k, 0.012, 5), "b": Metric(2.5 + k, 0.25, 5)} for k in range(len(methods))]
    rows = tuple(Row(method, own) for method, own in zip(methods, metrics, strict=True))
    now = {**item_named(item).presets["paper"], **config}
    return Entry(Result(item, "A title", "", preset, now, {}, 1.0, (), rows, {}, ()), Path("results") / item)


def page(monkeypatch, entries, *shown):
    monkeypatch.setattr(summary, "QUESTIONS", (Question("Is it so?", shown),))
    return summary.page(entries, Path("results"), Path())


def test_a_table_has_the_metrics_that_are_named_with_their_errors_and_the_command(monkeypatch):
    text = page(monkeypatch, [stored()], Shown("sinusoid", "Words.", {"b": "B", "a": "A"}))
    assert "## Is it so?" in text
    assert "| method | B | A |\n| --- | --- | --- |\n| one | 2.50 ± 0.25 | 1.500 ± 0.012 |\n| two |" in text
    assert "Command: `metaprior reproduce sinusoid --preset paper --out reproduction/results`" in text
    assert "5 seeds." in text
    assert "other settings" not in text


def test_models_are_rows_and_data_sets_columns(monkeypatch):
    entry = stored(methods=("left one", "right one", "left two, wide"))
    text = page(monkeypatch, [entry], Shown("sinusoid", "", {"a": "A", "b": "B"}, by_set=True))
    assert "| A / B | left | right |" in text
    assert "| one | 1.500 / 2.50 | 2.500 / 3.50 |" in text
    assert "| two, wide | 3.500 / 4.50 |  |" in text
    text = page(monkeypatch, [entry], Shown("sinusoid", "", {"a": "A", "c": "C"}, by_set=True))
    assert "| one | 1.500 / - | 2.500 / - |" in text
    text = page(monkeypatch, [entry], Shown("sinusoid", "", {"a": "A"}, by_set=True))
    assert "| one | 1.500 ± 0.012 | 2.500 ± 0.012 |" in text


@pytest.mark.parametrize("entries", [[], [stored(preset="smoke")]], ids=["none", "small sizes"])
def test_an_item_without_results_of_the_papers_sizes_says_so(monkeypatch, entries):
    text = page(monkeypatch, entries, Shown("sinusoid", "", {"a": "A"}))
    assert "No results of the paper's sizes are stored yet." in text
    assert "metaprior reproduce sinusoid" in text
    assert "| method |" not in text


def test_results_of_other_settings_are_told(monkeypatch):
    text = page(monkeypatch, [stored(num_train=7)], Shown("sinusoid", "", {"a": "A"}))
    assert "computed with other settings than the item has now" in text


def test_more_seeds_are_not_other_settings(monkeypatch):
    text = page(monkeypatch, [stored(seeds=7)], Shown("sinusoid", "", {"a": "A"}))
    assert "7 seeds." in text
    assert "other settings" not in text


def test_a_metric_that_is_not_stored_is_an_empty_cell(monkeypatch):
    text = page(monkeypatch, [stored()], Shown("sinusoid", "", {"a": "A", "c": "C"}))
    assert "| one | 1.500 ± 0.012 |  |" in text


def test_the_command_writes_the_page(tmp_path, run):
    target = tmp_path / "results.md"
    assert run("report", RESULTS, "--summary", target)[0] == 0
    assert target.read_text().startswith("# Results\n\nMade by `metaprior report --summary` from the results in ")
    code, _, err = run("report", RESULTS, "--summary", target, "--markdown", tmp_path / "other.md")
    assert code == 2
    assert "expected one of them; got several" in err
