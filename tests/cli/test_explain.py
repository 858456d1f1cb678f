"""`metaprior explain`: a page that fetches nothing and runs nothing, whatever the table holds."""

import base64
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from numpy.testing import assert_allclose

import metaprior
from cli_table import FRAME, NUMBERS, ROWS, fit_words
from metaprior import metrics
from metaprior.cli.explanation.figures import DARK, Figure, NoFigure, drawn, recoloured
from metaprior.cli.explanation.page import commands
from metaprior.cli.explanation.subject import Subject, figure_text

pd = pytest.importorskip("pandas")
pytest.importorskip("matplotlib")
pytestmark = pytest.mark.filterwarnings("ignore:the median distance")
#: All elements that a page is made of.
ELEMENTS = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "h1",
        "h2",
        "p",
        "b",
        "section",
        "div",
        "dl",
        "dt",
        "dd",
        "pre",
    ),
    *("table", "thead", "tbody", "tr", "th", "td", "figure", "picture", "source", "img", "figcaption", "code"),
    *("details", "summary"),
}


class Page(HTMLParser):
    """The elements, attributes and text of a page."""

    def __init__(self, content):
        super().__init__()
        self.tags, self.attributes, self.pieces, self.titles = [], [], [], []
        self.feed(content)
        self.text = " ".join(" ".join(self.pieces).split())

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_data(self, data):
        inside = self.tags[-1] if self.tags else ""
        if inside != "style":
            self.pieces.append(data)
        if inside == "h2":
            self.titles.append(data.strip())


@pytest.fixture(scope="module")
def explained(folder, tmp_path_factory):
    """What the command says of a regression, and its page."""
    from metaprior.cli import main

    out = tmp_path_factory.mktemp("pages") / "report.html"
    assert (
        main(["explain", str(folder / "price.metaprior"), str(folder / "train.csv"), "--out", str(out), "--quiet"]) == 0
    )
    return out.read_text(encoding="utf-8")


def images(content):
    """Return the images of a page as (media type, bytes)."""
    found = re.findall(r'(?:src|srcset)="data:([a-z+/]+);base64,([A-Za-z0-9+/=]+)"', content)
    return [(kind, base64.b64decode(text)) for kind, text in found]


def test_the_page_has_all_sections_and_holds_its_figures(explained):
    page = Page(explained)
    sections = ["Scores", "Findings", "The fit", "Calibration", "Components", "Relevance", "Training"]
    assert [title for title in page.titles if title] == [
        *sections,
        "Rows farthest from the data",
        "How to use the model",
    ]
    assert set(page.tags) <= ELEMENTS
    kinds = [kind for kind, _ in images(explained)]
    assert kinds.count("image/svg+xml") >= 10  # five figures, for light and for dark pages
    assert "metaprior predict" in page.text
    assert "In order" in page.text or "To change" in page.text


def test_the_page_fetches_nothing_and_runs_nothing(explained):
    page = Page(explained)
    addresses = [value for name, value in page.attributes if name in ("src", "srcset", "href")]
    assert addresses
    assert all(value.startswith("data:image/") for value in addresses)
    assert not [name for name, _ in page.attributes if name.startswith("on") or name == "style"]
    [policy] = [value for name, value in page.attributes if name == "content" and "default-src" in value]
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert "@import" not in explained
    assert "url(" not in explained
    for _, content in images(explained):
        assert not re.search(rb"<script|<image|href=\"(?!#)|url\((?!#)", content)


def test_the_page_suits_dark_screens_narrow_ones_and_paper(explained):
    for rule in ("prefers-color-scheme: dark", "max-width: 40rem", "@media print", "overflow-x: auto"):
        assert rule in explained
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in explained
    sources = re.findall(r'<source media="\(prefers-color-scheme: dark\)" srcset="data:image/svg', explained)
    assert len(sources) == explained.count("<picture>")


@pytest.mark.slow
def test_the_same_command_writes_the_same_page(folder, run, tmp_path, explained):
    out = tmp_path / "again.html"
    assert run("explain", folder / "price.metaprior", folder / "train.csv", "--out", out)[0] == 0
    assert out.read_text(encoding="utf-8") == explained


def test_scores_and_doubtful_rows_are_those_of_the_predictions(folder, run_json, tmp_path, by_hand):
    words = ["explain", folder / "price.metaprior", folder / "train.csv", "--out", tmp_path / "r.html"]
    code, said = run_json(*words)
    predicted, y = by_hand.predict_distribution(NUMBERS), FRAME["price"].to_numpy()
    expected = metrics.scores(predicted, y)
    assert code == 0
    assert_allclose([said["scores"][name] for name in expected], list(expected.values()), rtol=1e-9)
    assert_allclose(said["scores"]["r2"], 1 - np.mean((y - predicted.mean) ** 2) / np.var(y), rtol=1e-9)
    doubt = np.sqrt(predicted.epistemic_variance)
    head, rows = said["farthest"]["columns"], said["farthest"]["rows"]
    assert head[:5] == ["row", "x", "colour", "day", "member"]
    assert [row[0] for row in rows] == list(1 + np.argsort(-doubt)[:10])
    assert_allclose([row[head.index("predicted epistemic std")] for row in rows], np.sort(doubt)[::-1][:10], rtol=1e-9)
    assert [row[1:4] for row in rows] == FRAME.iloc[[row[0] - 1 for row in rows]][
        ["x", "colour", "day"]
    ].to_numpy().tolist()
    assert {found["severity"] for found in said["findings"]} <= {"ok", "note", "warning"}


def test_classes_have_a_page_of_their_own(folder, run, tmp_path):
    out = tmp_path / "r.html"
    assert run("explain", folder / "size.metaprior", folder / "train.csv", "--out", out)[0] == 0
    page = Page(out.read_text(encoding="utf-8"))
    for part in ("accuracy", "predicted mutual information", "classification into 'large', 'middle', 'small'"):
        assert part in page.text


def test_a_table_without_the_target_is_explained_as_far_as_it_goes(folder, run, csv, tmp_path):
    out = tmp_path / "r.html"
    code, _, _ = run("explain", folder / "price.metaprior", csv(FRAME.drop(columns="price")), "--out", out)
    page = Page(out.read_text(encoding="utf-8"))
    assert code == 0
    assert "so the predictions cannot be scored" in page.text
    assert "Calibration needs the values of 'price'" in page.text
    assert "Rows farthest from the data" in page.text


HOSTILE = {
    "script": "<script>alert(1)</script>",
    "attribute": '" onmouseover="alert(1)',
    "end": "</td></table></section></body><b onclick=alert(1)>",
    "comment": "<!--",
    "entity": "&lt;b&gt;",
    "formula": "$x_{1$ \\frac $$",
    "terminal": "a\x1b[31mb\x07",
    "reordered": "\u202egpj.exe",
    "template": "{{7*7}} ${x}",
    "image": "<img src=https://evil.example/x.png>",
    "underscore": "_hidden",
    "unknown letters": "青い",
}


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory):
    """The page of a table whose names, categories and classes are all hostile."""
    from metaprior.cli import main

    place = tmp_path_factory.mktemp("hostile")
    rng, texts = np.random.default_rng(0), list(HOSTILE.values())
    frame = pd.DataFrame({name: rng.standard_normal(48) for name in texts[:6]})
    frame[texts[6]] = [texts[k % 12] for k in range(48)]
    frame["<i>target</i>"] = [texts[k % 3] for k in range(48)]
    frame.to_csv(place / "<b>&.csv", index=False)
    model, out = place / "<u>'\".metaprior", place / "r.html"
    assert main([*fit_words(place / "<b>&.csv", "<i>target</i>", model), "--quiet"]) == 0
    assert main(["explain", str(model), str(place / "<b>&.csv"), "--out", str(out), "--quiet"]) == 0
    return out.read_bytes()


def test_no_text_of_a_table_becomes_html(hostile_page):
    page = Page(hostile_page.decode())
    assert set(page.tags) <= ELEMENTS
    assert {name for name, _ in page.attributes} <= {
        *("lang", "charset", "http-equiv", "content", "name", "class", "src", "srcset", "media", "alt")
    }
    for text in ("<script>alert(1)</script>", '" onmouseover="alert(1)', "<!--", "&lt;b&gt;", "<i>target</i>"):
        assert text in page.text


def test_no_text_of_a_table_commands_a_terminal_or_turns_the_line(hostile_page):
    text = hostile_page.decode()
    assert not any(character in text for character in "\x1b\x07\u202e")
    assert r"\u202e" in text
    assert r"a\x1b[31mb\x07" in text


def test_names_in_a_figure_are_short_and_no_formulas():
    assert figure_text("a" * 50) == "a" * 29 + "..."
    assert figure_text("a\nb\x1b") == r"a b\x1b"
    for text in HOSTILE.values():
        found = drawn(lambda ax, text=text: ax.set_xlabel(figure_text(text)), "alt", "caption")
        assert isinstance(found, Figure)


def test_a_figure_that_does_not_suit_the_model_says_why():
    def unsuited(axes):
        raise ValueError("plot_relevance: expected an input kernel; there is none.")

    assert drawn(unsuited, "", "") == NoFigure("Expected an input kernel; there is none.")


def test_a_dark_drawing_differs_in_its_colours_only():
    found = drawn(lambda ax: ax.plot([0, 1], [0, 1], color="#202020"), "a line", "")
    assert b"#202020" in found.light
    assert b"#202020" not in found.dark
    assert recoloured(found.light, DARK) == found.dark
    assert recoloured(found.dark, {new: old for old, new in DARK.items()}) != b""
    assert len(found.light) == len(found.dark)


def test_commands_quote_the_name_of_the_file():
    text = commands("my model; rm -rf.metaprior", "y")
    assert "metaprior info 'my model; rm -rf.metaprior'" in text
    assert "metaprior.load('my model; rm -rf.metaprior')" in text


def test_many_rows_are_thinned_and_keep_their_numbers(folder):
    model = metaprior.load(folder / "price.metaprior")
    many = pd.concat([FRAME] * 100, ignore_index=True)
    subject = Subject.of(model, many, allow_unseen=False, seed=0)
    assert len(subject.frame) == 2000
    assert_allclose(subject.frame["x"], many["x"].to_numpy()[subject.numbers - 1])
    assert np.all(np.diff(subject.numbers) > 0)


def test_a_page_is_not_overwritten_and_not_left_half(folder, run, csv, tmp_path):
    out = tmp_path / "r.html"
    out.write_text("mine")
    words = ["explain", folder / "price.metaprior", folder / "train.csv", "--out", out]
    assert (run(*words)[0], out.read_text()) == (1, "mine")
    bad = csv(FRAME.assign(colour="pink"))
    code, _, err = run("explain", folder / "price.metaprior", bad, "--out", tmp_path / "other.html")
    assert (code, "the category 'pink' was not in the training table" in err) == (1, True)
    assert not (tmp_path / "other.html").exists()
    assert run("explain", folder / "price.metaprior", bad, "--out", out, "--force", "--allow-unseen")[0] == 0
    assert out.read_text().startswith("<!doctype html>")


@pytest.fixture(scope="module")
def curve(tmp_path_factory):
    """A table of one column, and a model of it."""
    from metaprior.cli import main

    place = tmp_path_factory.mktemp("curve")
    x = np.linspace(0, 4, ROWS)
    pd.DataFrame({"x": x, "y": np.sin(x)}).to_csv(place / "t.csv", index=False)
    assert main([*fit_words(place / "t.csv", "y", place / "m"), "--quiet", "--holdout", "0.3"]) == 0
    return place


@pytest.mark.slow
def test_one_column_is_shown_as_a_curve_and_held_out_scores_are_told(curve, run):
    code, out, _ = run("explain", curve / "m", curve / "t.csv", "--out", curve / "r.html", "--json")
    page = Page((curve / "r.html").read_text())
    assert code == 0
    assert json.loads(out)["rows"] == ROWS
    assert "Where there are no data, the intervals should widen." in page.text
    assert "There is one column, so no column is more relevant" in page.text
    assert "held out 9 rows, chosen at random: rmse" in page.text
