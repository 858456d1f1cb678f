"""Active learning when few rows of the pool matter: rows chosen by joint information against random rows.

Nine tenths of the rows lie where the function is flat, and the others where it makes two waves. Writes active.png.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from metaprior import MetaGPRegressor, plots
from metaprior.decisions import PoolLoop
from metaprior.plots.curves import draw_regression
from metaprior.plots.style import CHANCE, DATA, legend_above

NOISE = 0.05
WAVES_FROM = 1.0


def function(x):
    """Return 0 up to x = 1, and two waves from there to x = 3."""
    return np.where(x > WAVES_FROM, np.sin(2 * np.pi * (x - WAVES_FROM)), 0.0)


def problem(seed, num_rows=400, share=0.1):
    """Return X and y of a pool and of a test set. A fraction `share` of rows is on [1, 3], the rest on [-3, 1]."""
    rng = np.random.default_rng([seed, 99])

    def rows():
        few = round(share * num_rows)
        x = np.concatenate([rng.uniform(-3, WAVES_FROM, num_rows - few), rng.uniform(WAVES_FROM, 3, few)])
        return x[:, None], function(x) + NOISE * rng.standard_normal(num_rows)

    return rows(), rows()


def loops(seed, estimator, n_observations, n_queries):
    """Run a loop for each acquisition, starting from the same rows, and return both."""
    (X, y), test = problem(seed)
    found = {}
    for acquisition in ("joint_information", "random"):
        loop = PoolLoop(estimator, X, acquisition=acquisition, n_queries=n_queries, test=test, random_state=seed)
        found[acquisition] = loop.run(y, n_observations)
    return found


def draw_fit(axes: Axes, loop, y, title):
    """Draw the function, the mean with its band, and the answers, in the order of the questions from light to dark."""
    x = np.linspace(-3.2, 3.2, 600)[:, None]
    draw_regression(axes, x[:, 0], loop.model.predict_distribution(x), levels=(0.95,), n_draws=0)
    axes.plot(x[:, 0], function(x[:, 0]), "--", color=DATA, lw=1, label="function")
    axes.plot(loop.X[:, 0], np.full(len(loop.X), -1.75), "|", color=CHANCE, ms=6, alpha=0.5, label="pool")
    rows = loop.rows
    number = np.arange(1, len(rows) + 1)
    points = axes.scatter(loop.X[rows, 0], y[rows], c=number, cmap="YlOrRd", s=26, ec=DATA, lw=0.6, zorder=3)
    axes.set(xlabel="x", ylim=(-2, 2), title=title)
    return points


def draw(found, y):
    """Draw both loops and their learning curves."""
    with plots.style():
        figure = Figure(figsize=(9, 8))
        top, middle, bottom = figure.subplots(3, 1)
        for axes, (name, loop) in zip((top, middle), found.items(), strict=True):
            title = f"rows by {name.replace('_', ' ')}" if name != "random" else "rows at random"
            points = draw_fit(axes, loop, y, title)
            history = loop.history.groupby("n_rows").last()
            bottom.plot(history.index, history["rmse"], "o-", label=title)
        legend_above(top, ncols=4)
        figure.colorbar(points, ax=[top, middle], label="number of the answer", aspect=40, pad=0.01)
        bottom.axhline(NOISE, color=DATA, ls=":", label="noise")
        bottom.set(xlabel="answers", ylabel="RMSE on test rows", yscale="log", yticks=(0.05, 0.1, 0.2))
        bottom.yaxis.set_major_formatter("{x:g}")
        bottom.yaxis.set_minor_locator(NullLocator())
        legend_above(bottom)
        figure.savefig("active.png", dpi=130)
    print("picture: active.png")


if __name__ == "__main__":
    model = MetaGPRegressor(hidden_layer_sizes=(20,), input_kernel="rbf", max_iter=1000)
    found = loops(0, model, n_observations=40, n_queries=5)
    for name, loop in found.items():
        print(f"{name}\n{loop.history.groupby('n_rows').last()[['rmse', 'nll', 'seconds', 'fresh']].round(3)}\n")
    draw(found, problem(0)[0][1])
