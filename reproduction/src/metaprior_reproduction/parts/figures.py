"""Drawing that several items share. The style of `metaprior.plots` holds while an item draws (`frame/writing.py`).

Figures are created directly, without the global state of pyplot.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from metaprior.plots.style import COLOURS, DATA, DRAWS, MEAN
from metaprior.plots.style import legend_below as legend_below
from metaprior_reproduction.parts.item import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The colours of the four classes, and those of no entropy, of half of the largest and of the largest: the background
#: of classes is grey, so that their colours stand out everywhere.
CLASS_COLOURS = COLOURS[:4]
ENTROPY_COLOURS = ("#FFFFFF", "#BCC6CF", "#6F7E8C")
#: Which of the functions drawn are in colour, by the percentage of functions that vary less.
IN_COLOUR = (55, 70, 85)


def panels(rows: int, columns: int, *, width: float = 3.0, height: float = 2.4, **kwargs: Any) -> "tuple[Figure, Any]":
    """Return a figure and its axes, [rows, columns]; width and height are in inches per panel."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.07, h_pad=0.05)  # type: ignore[union-attr, call-arg]
    return figure, figure.subplots(rows, columns, squeeze=False, **kwargs)


def label_edges(axes: np.ndarray, x: str, y: str) -> None:
    """Label the x axis of the lowest panel of every column that shows something, and the y axes of the first column.

    Panels that show nothing are hidden.
    """
    for panel in axes.flat:
        panel.set_visible(panel.has_data())
    for column in axes.T:
        lowest = [panel for panel in column if panel.get_visible()][-1:]
        for panel in lowest:
            panel.set_xlabel(x)
            panel.tick_params(labelbottom=True)
    for panel in axes[:, 0]:
        panel.set_ylabel(y)


def arrays_of(results: Results, method: str) -> Mapping[str, np.ndarray]:
    """Return the arrays of a method's first run that has any; empty if none has."""
    return next((run.outcome.arrays for run in results.of(method) if run.outcome.arrays), {})


def drawable(results: Results) -> list[str]:
    """Return the methods that have something to draw, in the order of the table."""
    return [method for method in results.methods if arrays_of(results, method)]


def regression_panel(axes: "Axes", arrays: Mapping[str, np.ndarray], title: str = "") -> None:
    """Draw a one-dimensional regression: mean, bands of one and two standard deviations, draws, training points."""
    x, mean, std = arrays["x"], arrays["mean"], arrays["std"]
    for times, shade in ((2, 0.15), (1, 0.3)):
        label = f"± {times} standard deviation{'s' if times > 1 else ''}"
        axes.fill_between(x, mean - times * std, mean + times * std, color=MEAN, alpha=shade, lw=0, label=label)
    axes.plot(x, mean, color=MEAN, lw=2.0, label="mean")
    for index, draw in enumerate(arrays.get("draws", ())):
        axes.plot(x, draw, color=DRAWS, lw=0.6, label="functions drawn" if index == 0 else None)
    if "truth" in arrays:
        axes.plot(x, arrays["truth"], color=DATA, lw=0.8, ls="--", label="without noise")
    axes.plot(arrays["train_x"], arrays["train_y"], ".", color=DATA, ms=3, label="training points")
    axes.set_title(title)
    axes.set_xlim(float(x[0]), float(x[-1]))


def regression_grid(results: Results, methods: Sequence[Sequence[str]]) -> "Figure":
    """Draw one panel per method, in the given rows and columns, with a y axis that fits the true function."""
    figure, axes = panels(len(methods), len(methods[0]), width=3.2, height=2.2, sharex=True, sharey=True)
    for line, row in zip(axes, methods, strict=True):
        for panel, method in zip(line, row, strict=True):
            arrays = arrays_of(results, method)
            if arrays:
                regression_panel(panel, arrays, method)
                view(panel, [arrays["truth"]], 0.3)
    label_edges(axes, "x", "y")
    legend_below(figure, axes[0, 0])
    return figure


def functions_panel(axes: "Axes", x: np.ndarray, functions: np.ndarray) -> np.ndarray:
    """Draw all functions in thin grey, and three of medium to large spread in colour; return these three."""
    order = np.argsort(functions.std(axis=1))
    chosen = functions[order[[len(order) * part // 100 for part in IN_COLOUR]]]
    axes.plot(x, functions.T, color="0.6", lw=0.5, alpha=0.5)
    for colour, function in zip(COLOURS, chosen, strict=False):
        axes.plot(x, function, color=colour, lw=1.3)
    axes.set_xlim(float(x[0]), float(x[-1]))
    return chosen


def class_panel(
    axes: "Axes", probabilities: np.ndarray, limit: float, points: np.ndarray, labels: np.ndarray, title: str = ""
) -> Any:
    """Draw the entropy as background, contours at a class probability of 0.7 and training points; return the image.

    `probabilities` come from `methods.class_map`, [size, size, classes]. The entropy is divided by its largest value.
    """
    from matplotlib.colors import LinearSegmentedColormap

    share, colours = entropy_share(probabilities), LinearSegmentedColormap.from_list("entropy", ENTROPY_COLOURS)
    side = np.linspace(-limit, limit, len(share), endpoint=False)
    extent = (-limit, limit, -limit, limit)
    image = axes.imshow(share, origin="lower", extent=extent, cmap=colours, vmin=0, vmax=1, aspect="auto")
    axes.grid(visible=False)
    for label, colour in zip(range(probabilities.shape[2]), CLASS_COLOURS, strict=False):
        own = points[labels == label]
        axes.plot(own[:, 0], own[:, 1], ".", color=colour, mec="w", mew=0.3, ms=5)
        of_class = probabilities[..., label]
        if of_class.min() < 0.7 < of_class.max():
            axes.contour(side, side, of_class, levels=[0.7], colors=[colour], linewidths=1.4)
    axes.set_title(title)
    marks = (-limit / 2, 0, limit / 2)
    axes.set(xlim=(-limit, limit), ylim=(-limit, limit), xticks=marks, yticks=marks)
    return image


def entropy_share(probabilities: np.ndarray) -> np.ndarray:
    """Return the entropy over the last axis, divided by the logarithm of the number of classes."""
    p = np.maximum(np.asarray(probabilities, np.float64), np.finfo(np.float64).tiny)
    return -np.sum(p * np.log(p), axis=-1) / np.log(p.shape[-1])


def entropy_bar(figure: "Figure", image: Any, axes: Any) -> None:
    """Add a bar that explains the colours of `class_panel`."""
    figure.colorbar(image, ax=axes, label="entropy / log(classes)", shrink=0.7, aspect=35, pad=0.02)


def view(axes: "Axes", values: Sequence[np.ndarray], margin: float = 0.5) -> None:
    """Limit the y axis to the range of the values, extended by `margin` times that range on both sides."""
    low, high = min(float(np.min(v)) for v in values), max(float(np.max(v)) for v in values)
    axes.set_ylim(low - margin * (high - low), high + margin * (high - low))
