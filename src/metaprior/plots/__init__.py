"""Plots of fitted models and of what they predict; needs `pip install ".[plot]"` in a clone.

Every function draws into the axes it is given, or into a new figure, and returns the axes. Colours can be told apart
by people who are colour-blind. The style holds while a plot is drawn, and `style()` is the same for figures of your
own; no setting of matplotlib changes for good.

>>> from metaprior import plots
>>> axes = plots.plot_fit(model, X, y)  # doctest: +SKIP
>>> axes.figure.savefig("fit.png")  # doctest: +SKIP
"""

from metaprior.plots.calibration import plot_calibration
from metaprior.plots.components import plot_components
from metaprior.plots.functions import plot_fit
from metaprior.plots.intervals import plot_intervals
from metaprior.plots.prediction import plot_predictive
from metaprior.plots.relevance import plot_relevance
from metaprior.plots.style import legend_below, style
from metaprior.plots.training import plot_elbo

__all__ = [
    "legend_below",
    "plot_calibration",
    "plot_components",
    "plot_elbo",
    "plot_fit",
    "plot_intervals",
    "plot_predictive",
    "plot_relevance",
    "style",
]
