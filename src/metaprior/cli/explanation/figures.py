"""The figures of a report, as drawings (SVG) for light and for dark pages.

The plots are those of `metaprior.plots`, and the plot of predictions beside targets. A figure is drawn once; the dark
version has other colours for ink, lines and paper.
"""

import io
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from metaprior.cli.describe import with_short_numbers
from metaprior.cli.explanation.subject import Subject, figure_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

#: The colours of a light page, and what stands for them on a dark one.
DARK = {
    "#202020": "#e4e6e9",
    "#000000": "#e4e6e9",
    "#303030": "#d0d3d7",
    "#606060": "#9aa0a8",
    "#808080": "#8b9199",
    "#e4e4e4": "#31353a",
    "#f4f4f4": "#1e2125",
    "#0072b2": "#4ba3e3",
    "#d55e00": "#f08a3c",
}
#: If a drawing has more bytes, it is embedded as dots (PNG), and both versions are the light one.
LARGEST_SVG = 600_000
#: Points of a curve.
NUM_POINTS = 1_500
#: Every colour is written in the drawing, which has the same bytes each time, and no name is read as a formula.
SETTINGS: Any = {"text.color": "#202020", "text.parse_math": False, "svg.hashsalt": "metaprior", "svg.fonttype": "path"}


class Figure(NamedTuple):
    """A drawing in two versions, what it shows, and what to look for in it."""

    media_type: str
    light: bytes
    dark: bytes
    alt: str
    caption: str


class NoFigure(NamedTuple):
    """A figure that this model or this table has none of, and why."""

    reason: str


def all_figures(subject: Subject) -> Iterator[tuple[str, "list[Figure | NoFigure]"]]:
    """Yield the figures of every section, one section after another."""
    yield "fit", _fit(subject)
    yield "calibration", _calibration(subject)
    yield "components", _components(subject)
    yield "relevance", [_relevance(subject)]
    yield "training", [_training(subject)]


# --- what is drawn --------------------------------------------------------------------


def _fit(subject: Subject) -> "list[Figure | NoFigure]":
    from metaprior import plots

    model, x, y = subject.named_estimator, subject.named_x, subject.y
    if x.shape[1] == 1:
        found = [
            drawn(
                lambda ax: plots.plot_fit(model, x, y, n_points=NUM_POINTS, n_draws=3, ax=ax),
                f"{subject.target} against {subject.names[0]}",
                "Where there are no data, the intervals should widen.",
            )
        ]
        if subject.is_long_curve:
            last = subject.last_rows
            some, own = x.iloc[last], None if y is None else y[last]
            found.append(
                drawn(
                    lambda ax: plots.plot_fit(model, some, own, n_points=NUM_POINTS, n_draws=3, ax=ax),
                    f"The last {len(last)} rows of {subject.target} against {subject.names[0]}",
                    f"A closer look: the last {len(last)} rows, and what lies beyond them.",
                )
            )
        return found
    intervals = drawn(
        lambda ax: plots.plot_intervals(subject.predictive, y, ax=ax),
        f"Predictions of {subject.target}, one row beside the other",
        "Rows whose value lies outside of its interval, or whose most probable class is wrong, are marked.",
    )
    return [intervals] if y is None or subject.is_classified else [_observed(subject, y), intervals]


def _observed(subject: Subject, y: np.ndarray) -> "Figure | NoFigure":
    return drawn(
        lambda ax: _draw_observed(ax, subject, y),
        f"Predicted {subject.target} against its value in the table",
        "Each line is the 95 % interval of a row; 5 % of them should miss the diagonal.",
        size=(5.2, 5.0),
    )


def _draw_observed(axes: "Axes", subject: Subject, y: np.ndarray) -> None:
    """Draw the predictive mean and interval of every row against its target."""
    from metaprior.plots.style import CHANCE, DRAWS, MEAN, legend_above

    mean, (low, high) = subject.predictive.mean, subject.predictive.interval(0.95)
    is_out = (y < low) | (y > high)
    for rows, colour, label in ((~is_out, MEAN, "95 % interval of y"), (is_out, DRAWS, "value outside")):
        axes.vlines(y[rows], low[rows], high[rows], color=colour, alpha=0.3, lw=1.1, label=label)
        axes.plot(y[rows], mean[rows], ".", color=colour, ms=4)
    ends = [float(min(y.min(), mean.min())), float(max(y.max(), mean.max()))]
    axes.plot(ends, ends, color=CHANCE, lw=0.9, ls="--", label="predicted = value")
    axes.set_xlabel(f"{figure_text(subject.target)} in the table")
    axes.set_ylabel(f"{figure_text(subject.target)} predicted")
    legend_above(axes, ncols=3)


def _calibration(subject: Subject) -> "list[Figure | NoFigure]":
    from metaprior import plots

    y = subject.y
    if y is None:
        return [NoFigure(f"Calibration needs the values of {subject.target!r}, which this table does not have.")]
    if subject.is_classified:
        kinds = {"reliability": "The points should lie on the diagonal: of rows with confidence 0.8, 80 % are right."}
    else:
        kinds = {
            "coverage": "The curve should stay within the band: below it, the model is too sure of itself.",
            "pit": "The bars should be level: high ends say that the model is too sure, a slope that it is off.",
        }

    def of_kind(kind: str, caption: str) -> "Figure | NoFigure":
        return drawn(
            lambda ax: plots.plot_calibration(subject.predictive, y, kind=kind, ax=ax),
            f"Calibration: {kind}",
            caption,
            size=(4.6, 4.2),
        )

    return [of_kind(kind, caption) for kind, caption in kinds.items()]


def _components(subject: Subject) -> "list[Figure | NoFigure]":
    from metaprior import plots

    model, alt = subject.named_estimator, "What each part of the input kernel contributes"

    def along(x: "pd.DataFrame", caption: str) -> "Figure | NoFigure":
        return drawn(lambda ax: _short_names(plots.plot_components(model, x, n_points=NUM_POINTS, ax=ax)), alt, caption)

    found = [along(subject.named_x, "What each part of the input kernel contributes to the prediction.")]
    if isinstance(found[0], Figure) and subject.is_long_curve:
        found.append(along(subject.named_x.iloc[subject.last_rows], f"The last {len(subject.last_rows)} rows of it."))
    return found


def _short_names(axes: "Axes") -> None:
    """Shorten the names of kernels beside the bars, or in the legend, so that the figure has room for them."""
    labels = [label.get_text() for label in axes.get_yticklabels()]
    legend = axes.get_legend()
    if legend is None:
        axes.set_yticks(axes.get_yticks(), [figure_text(with_short_numbers(label)) for label in labels])
    for text in [] if legend is None else legend.get_texts():
        text.set_text(figure_text(with_short_numbers(text.get_text()), 60))


def _relevance(subject: Subject) -> "Figure | NoFigure":
    from metaprior import plots

    if subject.x.shape[1] == 1:
        return NoFigure("There is one column, so no column is more relevant than another.")
    return drawn(
        lambda ax: plots.plot_relevance(subject.named_estimator, ax=ax),
        "Relevance of the columns",
        "How much the input kernel attends to each column. The layers below the output see all columns.",
        size=(6.4, 1.0 + 0.26 * min(20, subject.x.shape[1])),
    )


def _training(subject: Subject) -> "Figure | NoFigure":
    from metaprior import plots

    return drawn(
        lambda ax: plots.plot_elbo(subject.named_estimator, ax=ax),
        "The bound of every step of training",
        "The bound should be level at the end; if it still rises there, fit with more steps (--max-iter).",
    )


# --- how it is drawn ------------------------------------------------------------------


def drawn(
    draw: "Callable[[Axes], object]", alt: str, caption: str, size: tuple[float, float] = (6.4, 3.8)
) -> Figure | NoFigure:
    """Return a figure, or why there is none if the model or the table does not suit it."""
    from matplotlib.figure import Figure as Sheet

    with _settings():
        sheet = Sheet(figsize=size, layout="constrained")
        try:
            draw(sheet.add_subplot())
        except ValueError as error:
            return NoFigure(_reason(error))
        light = _saved(sheet, "svg")
        if len(light) > LARGEST_SVG:
            dots = _saved(sheet, "png")
            return Figure("image/png", dots, dots, alt, caption)
    return Figure("image/svg+xml", light, recoloured(light, DARK), alt, caption)


def recoloured(drawing: bytes, colours: Mapping[str, str]) -> bytes:
    """Return a drawing with other colours."""
    for old, new in colours.items():
        drawing = drawing.replace(old.encode(), new.encode())
    return drawing


@contextmanager
def _settings() -> Iterator[None]:
    """Draw in the library's style and with these settings."""
    import matplotlib as mpl

    from metaprior import plots

    with warnings.catch_warnings(), plots.style(), mpl.rc_context(SETTINGS):
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)  # it is drawn as a box
        yield


def _saved(sheet: Any, form: str) -> bytes:
    content = io.BytesIO()
    metadata = {"Date": None, "Creator": None} if form == "svg" else {}
    sheet.savefig(content, format=form, transparent=form == "svg", metadata=metadata, dpi=160)
    return content.getvalue()


def _reason(error: ValueError) -> str:
    """Return an error of a plot as a sentence, without the name of the function."""
    _, _, said = str(error).partition(": ")
    text = said or str(error)
    return text[:1].upper() + text[1:]
