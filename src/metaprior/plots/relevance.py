"""`plot_relevance`: which input columns the fitted input kernel attends to."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from metaprior.estimators.lengthscales import column_names, num_projections
from metaprior.kernels import Kernel, Linear, Periodic
from metaprior.kernels.compose import ActiveDims
from metaprior.kernels.stationary import Stationary
from metaprior.plots.style import MEAN, drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_relevance(model: Any, *, most: int = 20, ax: "Axes | None" = None) -> "Axes":
    """Plot the relevance of every input column: its standard deviation over the lengthscale of the input kernel.

    A relevance of 1 means that the function changes over about one standard deviation of the column, one of 0.1 that it
    hardly changes over the whole column. Columns with the same lengthscale, as of a kernel with one for all, have the
    same relevance. Of several kernels, the largest counts. The layers below the output see all columns, whatever this
    plot says.

    Parameters
    ----------
    model : fitted estimator
        One with `input_kernel_` (`MetaGPRegressor`, `MetaGPClassifier`) or `kernel_` (`ExactGPRegressor`).
    most : int, default=20
        The most columns that are drawn, the most relevant first.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    names, values = relevance(model)
    order = np.argsort(-values, kind="stable")[:most]
    with drawing(ax, figsize=(5.2, 0.9 + 0.26 * len(order))) as axes:
        axes.barh(np.arange(len(order)), values[order], height=0.62, color=MEAN)
        axes.set_yticks(np.arange(len(order)), [names[i] for i in order])
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("relevance: standard deviation of the column / lengthscale")
    return axes


def relevance(model: Any) -> tuple[list[str], np.ndarray]:
    """Return the names of the columns, and the standard deviation of each over its smallest lengthscale."""
    kernel, scale = _input_kernel(model), np.asarray(vars(model)["x_scale_"])
    names, found = column_names(model), np.zeros(len(scale))
    for columns, own in _relevances(kernel.with_columns(names), np.arange(len(scale)), scale):
        np.maximum.at(found, columns, own)
    return names, found


def _input_kernel(model: Any) -> Kernel:
    known = vars(model)
    kernel = known.get("input_kernel_", known.get("kernel_"))
    if not isinstance(kernel, Kernel):
        raise ValueError(
            f"plot_relevance: expected a fitted estimator with an input kernel; {type(model).__name__} has none. Fit "
            'one with input_kernel="rbf", for instance.'
        )
    if num_projections(model):
        raise ValueError(
            "plot_relevance: expected an input kernel on the columns themselves; this one sees a learned projection, "
            "which mixes them."
        )
    return kernel


def _relevances(kernel: Kernel, columns: np.ndarray, scale: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield columns and their relevances, for every kernel that another one is made of."""
    if isinstance(kernel, ActiveDims):
        columns = columns[kernel.numbers()]
    own = scale[columns]
    if isinstance(kernel, Stationary):
        yield columns, own / np.broadcast_to(np.asarray(kernel.lengthscale), own.shape)
    elif isinstance(kernel, Periodic):
        yield columns, 1 / np.broadcast_to(np.asarray(kernel.lengthscale), own.shape)
    elif isinstance(kernel, Linear):
        yield columns, own * np.sqrt(np.broadcast_to(np.asarray(kernel.variance), own.shape))
    for child in kernel.children().values():
        yield from _relevances(child, columns, scale)
