"""The one style of all plots: where it comes from, how axes are made in it, and where legends go."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metaprior.extras import imported

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colours of Okabe and Ito, in the order in which several things are drawn. They differ for every kind of eye.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
#: The mean and its bands; functions drawn; data; what chance allows.
MEAN, DRAWS, DATA, CHANCE = "#0072B2", "#D55E00", "#202020", "#808080"
#: The width that an entry of a legend below panels takes, in inches.
ENTRY = 1.3
STYLE_FILE = Path(__file__).with_name("metaprior.mplstyle")


@contextmanager
def style() -> Iterator[None]:
    """Draw in the style of metaprior inside this block; afterwards all settings of matplotlib are as before.

    A backend that the first figure loads says whether figures are shown at once, as those of notebooks are. That stays.
    """
    imported("matplotlib.style", part="metaprior.plots", extra="plot")
    import matplotlib as mpl

    with mpl.style.context(STYLE_FILE):
        yield
        shown_at_once = mpl.is_interactive()
    mpl.interactive(shown_at_once)


@contextmanager
def drawing(axes: "Axes | None", **figure: Any) -> "Iterator[Axes]":
    """Yield the axes to draw in, in the style: those given, or those of a new figure."""
    with style():
        if axes is None:
            import matplotlib.pyplot as plt

            axes = plt.figure(**figure).add_subplot()
        yield axes


def colour(number: int) -> str:
    """Return the colour of the first, second, ... of several things."""
    return COLOURS[number % len(COLOURS)]


def legend_above(axes: "Axes", ncols: int = 4) -> None:
    """Put the legend above the axes, where it hides no line. With a title, take `legend_below`: both would be there."""
    handles, labels = axes.get_legend_handles_labels()
    if len(handles) > 0:
        axes.legend(
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            ncols=min(ncols, len(labels)),
            borderaxespad=0.2,
            handlelength=1.6,
            columnspacing=1.2,
        )


def legend_below(figure: "Figure", axes: "Axes | None" = None, ncols: int | None = None) -> None:
    """Put one legend below all panels of a figure, instead of their own.

    Parameters
    ----------
    figure : matplotlib Figure
        One with several axes, such as those that the functions of this module have drawn into.
    axes : matplotlib Axes, default=None
        The panel that has all the entries; None takes those of all panels, equal ones once.
    ncols : int, default=None
        How many columns the legend has; None takes at most as many as fit the width, all of one height.
    """
    entries: dict[str, Any] = {}
    for panel in figure.axes if axes is None else [axes]:
        handles, labels = panel.get_legend_handles_labels()
        entries |= {label: handle for handle, label in zip(handles, labels, strict=True) if label not in entries}
    for panel in figure.axes:
        if (legend := panel.get_legend()) is not None:
            legend.remove()
    rows = -(-len(entries) // max(1, int(figure.get_figwidth() / ENTRY)))
    ncols = ncols or -(-len(entries) // max(1, rows))
    with style():
        figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=max(1, ncols))
