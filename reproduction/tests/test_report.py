"""`metaprior report`: one page that says everything and needs nothing beside itself."""

import dataclasses
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

import tosses
from metaprior_reproduction.items import item_named
from metaprior_reproduction.parts.item import Outcome, Verdict
from metaprior_reproduction.report import markdown, read_entries
from metaprior_reproduction.report.contents import UNKNOWN_CAUSE, cause_of
from metaprior_reproduction.report.numbers import number_text
from tossing import reproduced

ROOT = Path(__file__).parents[2]
#: The fair coin has a metric that is infinite.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered in subtract")


class Links(HTMLParser):
    """What a page refers to, its text, and whether its elements are closed."""

    def __init__(self):
        super().__init__()
        self.links, self.text, self.open = [], "", []

    def handle_starttag(self, tag, attrs):
        self.links += [value for name, value in attrs if name in ("src", "href", "srcset", "data", "action", "poster")]
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture
def page(finished, run):
    """The HTML page of the tosses, made where there are no files of runs."""
    shutil.rmtree(finished / "tosses" / "runs")
    assert run("report", finished)[0] == 0
    return (finished / "report.html").read_text()


def test_the_page_says_everything(page, whole):
    parsed = Links()
    parsed.feed(page)
    assert parsed.open == []
    result = json.loads((whole / "tosses" / "result.json").read_text())
    expected = [
        tosses.ITEM.title,
        tosses.ITEM.claim,
        tosses.ITEM.notes,
        "Third coin",
        "(0.4375)",
        "(0.125)",
        "num_tosses",
    ]
    for row in result["rows"]:
        expected += [row["method"], *[number_text(value["mean"], value["se"]) for value in row["metrics"].values()]]
    expected += [text for verdict in result["verdicts"] for text in (verdict["claim"], verdict["evidence"])]
    expected += [
        "Agrees.",
        "Worse (baseline).",
        "ours: agrees 1, better 0, worse 0; baselines: agrees 0, better 0, worse 1.",
        "Computed in",
        *[f"{name} {number}" for name, number in result["versions"].items()],
    ]
    for text in expected:
        assert text in parsed.text, text


def test_the_page_needs_nothing_beside_itself(page):
    parsed = Links()
    parsed.feed(page)
    images = [link for link in parsed.links if link.startswith("data:image/svg+xml;base64,")]
    assert len(images) == 1
    assert all(link.startswith(("data:", "#")) for link in parsed.links)
    outside = re.sub(r"data:[^\"]*", "", page)
    assert "http:" not in outside
    assert "https:" not in outside
    assert "@import" not in outside
    assert "url(" not in outside
    assert "<script" not in outside
    assert "Content-Security-Policy" in outside
    assert "prefers-color-scheme: dark" in outside


def test_a_large_svg_gives_way_to_its_png(finished, run):
    svg = finished / "tosses" / "heads.svg"
    svg.write_bytes(svg.read_bytes() + b" " * 500_000)
    assert run("report", finished)[0] == 0
    assert "data:image/png;base64," in (finished / "report.html").read_text()


def test_a_page_is_not_overwritten_unasked(page, finished, run):
    code, _, err = run("report", finished)
    assert code == 1
    assert "report.html exists; give another name, or use --force" in err
    assert run("report", finished, "--force")[0] == 0


def test_markdown_links_lead_to_the_figures(finished, run, tmp_path):
    (tmp_path / "docs").mkdir()
    target = tmp_path / "docs" / "reproduction.md"
    assert run("report", finished, "--markdown", target)[0] == 0
    text = target.read_text()
    (link,) = re.findall(r"!\[.*\]\((.*)\)", text)
    assert (target.parent / link).resolve() == (finished / "tosses" / "heads.png").resolve()
    assert "## tosses" in text
    assert "- **Worse (baseline).** The fair coin never falls on heads. Found: share of heads" in text
    assert "| Coin \\[0.8\\] & \\<bent\\> |" in text
    assert "(0.4375)" in text
    assert "Coins are simulated \\| not tossed." in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in tables} == {5, 9}  # 4 columns of numbers, 8 of the overview


LOST = Verdict("Heads & <only>.", "worse", "share of heads 0.4.", "ours")


@pytest.mark.parametrize(
    ("causes", "told"), [({}, "not known yet"), ({LOST.claim: "The coin is <fair>."}, "The coin is <fair>")]
)
def test_a_claim_of_ours_that_is_not_met_is_shown_with_its_cause(tmp_path, run, causes, told):
    reproduced(tmp_path, judge=lambda results: [LOST], causes=causes)
    assert run("report", tmp_path)[0] == 0
    assert run("report", tmp_path, "--markdown", tmp_path / "page.md")[0] == 0
    parsed = Links()
    parsed.feed((tmp_path / "report.html").read_text())
    assert f"Cause: {told}" in parsed.text
    assert markdown.inline(f"Found: share of heads 0.4. Cause: {told}.") in (tmp_path / "page.md").read_text()


def test_verdicts_that_hold_or_are_about_other_methods_have_no_cause_beside_a_declared_one(tmp_path):
    held = dataclasses.replace(LOST, outcome="agrees")
    other = dataclasses.replace(LOST, whose="baseline")
    result = reproduced(tmp_path, judge=lambda results: [held, other], causes={LOST.claim: "Why."})
    assert [verdict["cause"] for verdict in result["verdicts"]] == ["", "Why."]
    assert [cause_of(verdict) for verdict in (held, other, LOST)] == ["", "", UNKNOWN_CAUSE]


def test_every_declared_cause_is_that_of_a_verdict_in_the_committed_results():
    for entry in read_entries(ROOT / "reproduction" / "results"):
        claims = {verdict.claim for verdict in entry.result.verdicts}
        assert set(item_named(entry.id).causes) <= claims, entry.id


def test_a_note_stands_at_the_top_of_the_markdown_page(finished, run, tmp_path):
    (tmp_path / "note.md").write_text("> Coins of one mint.\n")
    assert run("report", finished, "--markdown", tmp_path / "page.md", "--note", tmp_path / "note.md")[0] == 0
    assert (tmp_path / "page.md").read_text().startswith("# The paper, reproduced\n\n> Coins of one mint.\n\nMade by ")


def test_a_note_needs_a_markdown_page(finished, run, tmp_path):
    code, _, err = run("report", finished, "--note", tmp_path / "note.md")
    assert code == 2
    assert "--note: expected --markdown FILE or --summary FILE too" in err


def test_the_committed_page_is_made_from_the_committed_results():
    docs, results = ROOT / "docs", ROOT / "reproduction" / "results"
    note = (results / "note.md").read_text()
    assert (docs / "reproduction.md").read_text() == markdown.page(read_entries(results), docs, note)


def test_many_metrics_go_down_the_page(tmp_path, run):
    def compute(config, method, seeds):
        return [Outcome({f"rmse_{k}": float(k + seed) for k in range(30)}) for seed in seeds]

    reproduced(tmp_path, compute=compute, judge=lambda results: [], draw=lambda results: {})
    assert run("report", tmp_path)[0] == 0
    text = (tmp_path / "report.html").read_text()
    assert "<th>rmse_29</th>" in text
    assert "30.00 ± 0.58" in text
    assert "<details><summary>31 metrics</summary>" in text  # the paper's one is another


def test_a_folder_without_results_is_told(tmp_path, run):
    code, _, err = run("report", tmp_path)
    assert code == 1
    assert "expected results as 'metaprior reproduce ITEM --out" in err


def test_a_figure_that_is_gone_is_told(finished, run):
    (finished / "tosses" / "heads.svg").unlink()
    assert run("report", finished)[0] == 0  # the PNG serves
    (finished / "tosses" / "heads.png").unlink()
    code, _, err = run("report", finished, "--force")
    assert code == 1
    assert "expected the figure heads.png or heads.svg beside result.json" in err


@pytest.mark.parametrize(
    ("mean", "se", "text"),
    [
        (0.10543, 0.00212, "0.1054 ± 0.0021"),
        (-0.8312, 0.0249, "-0.831 ± 0.025"),
        (88.12, 31.4, "88 ± 31"),
        (0.10543, None, "0.1054"),
        (2.0, 0.0, "2"),
        (None, None, "not finite"),
        (1.234567e7, 2.5e5, "1.235e+07 ± 2.5e+05"),
    ],
)
def test_numbers_are_told_to_the_second_digit_of_their_error(mean, se, text):
    assert number_text(mean, se) == text
