"""The examples of the gallery: what they look like as files and, in the slow test, that they run and what they draw."""

import ast
import re
import runpy
import warnings
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parents[1] / "examples" / "gallery").glob("*.py"))
each_script = pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
#: Everything that draws random numbers and takes a seed.
RANDOM = ("default_rng", "make_moons", "make_friedman1", "minimise", "PoolLoop", "draw_latents", "draw_functions")


def called(tree):
    """Yield every call with the last part of the name of what is called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func).rpartition(".")[2], node


def is_random(name):
    return name in RANDOM or name.startswith("MetaGP") or name.endswith(("Regressor", "Classifier"))


def test_the_gallery_has_a_header_and_at_least_fifteen_examples():
    header = SCRIPTS[0].with_name("GALLERY_HEADER.rst").read_text(encoding="utf-8").splitlines()
    assert set(header[1]) == {"="}
    assert len(SCRIPTS) >= 15
    assert all(script.name.startswith("plot_") for script in SCRIPTS)


@each_script
def test_an_example_begins_with_a_title_and_two_to_five_sentences(script):
    title, line, blank, *text = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))).splitlines()
    assert line == "=" * len(title)
    assert blank == ""
    sentences = re.findall(r"[.?!](?:\s|$)", re.sub(r"``.*?``", "code", " ".join(text)))
    assert 2 <= len(sentences) <= 5


@each_script
def test_an_example_shows_its_pictures_and_changes_no_setting(script):
    source = script.read_text(encoding="utf-8")
    assert source.endswith("plt.show()\n")
    assert not re.search(r"rcParams|style\.use|\brc\(|filterwarnings", source)


@each_script
def test_an_example_is_the_same_every_time(script):
    tree = ast.parse(script.read_text(encoding="utf-8"))
    seeds = {name: node for name, node in called(tree) if is_random(name)}
    assert seeds
    # the loop seeds the fits of its model, and a conformal model is seeded like the one inside
    unseeded = [
        ast.unparse(node)
        for name, node in called(tree)
        if is_random(name)
        and not (node.args if name == "default_rng" else [k for k in node.keywords if k.arg == "random_state"])
        and "PoolLoop" not in seeds
    ]
    assert unseeded == []


# --- what they draw -------------------------------------------------------------------


def names_of_axis(axis, figure):
    """Return the labels of an axis, of those that it is shared with, and the words at its ticks."""
    which = axis.axis_name
    shared = getattr(axis.axes, f"get_shared_{which}_axes")()
    labels = [getattr(own, f"{which}axis").get_label_text() for own in figure.axes if shared.joined(own, axis.axes)]
    ticks = [tick.get_text() for tick in axis.get_ticklabels()]
    return [name for name in [*labels, *ticks] if re.search("[A-Za-z]", name)]


def colliding(axis, renderer):
    """Return the pairs of labels of ticks that lie over each other."""
    low, high = sorted(axis.get_view_interval())
    shown = [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    boxes = [(own.get_text(), own.get_window_extent(renderer)) for own in shown if own.get_visible() and own.get_text()]
    return [(a, b) for (a, one), (b, other) in zip(boxes, boxes[1:], strict=False) if one.overlaps(other)]


@pytest.mark.slow
@each_script
def test_an_example_runs_and_draws_one_or_two_pictures_with_labels_that_do_not_collide(script, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    settings = dict(matplotlib.rcParams)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
        runpy.run_path(str(script))
    figures = [plt.figure(number) for number in plt.get_fignums()]
    try:
        assert dict(matplotlib.rcParams) == settings
        assert 1 <= len(figures) <= 2
        for figure in figures:
            figure.canvas.draw()
            renderer = figure.canvas.get_renderer()
            for axes in figure.axes:
                for axis in (axes.xaxis, axes.yaxis):
                    assert colliding(axis, renderer) == []
                    assert names_of_axis(axis, figure) or axes.get_label() == "<colorbar>", axes.get_title()
                legend = axes.get_legend()
                assert legend is None or legend.get_window_extent(renderer).y0 >= axes.get_window_extent(renderer).y1
    finally:
        plt.close("all")
