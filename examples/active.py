"""Active learning when few rows of the pool matter: rows chosen by joint information against random rows.

Nine tenths of the rows lie where the function is flat, and the others where it makes two waves. Writes active.png.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from metaprior import MetaGPRegressor
from metaprior.decisions import PoolLoop

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
    """Draw the function, the mean with its band, and the answers, numbered in the order of the questions."""
    x = np.linspace(-3.2, 3.2, 600)[:, None]
    predicted = loop.model.predict_distribution(x)
    axes.fill_between(x[:, 0], *predicted.interval(0.95), alpha=0.2, color="C0", lw=0, label="95 % interval")
    axes.plot(x[:, 0], predicted.mean, color="C0", lw=2, label="mean")
    axes.plot(x[:, 0], function(x[:, 0]), "--", color="0.4", lw=1, label="function")
    axes.plot(loop.X[:, 0], np.full(len(loop.X), -1.75), "|", color="0.6", ms=6, label="pool")
    rows = loop.rows
    axes.plot(loop.X[rows, 0], y[rows], ".", color="k", label="answers")
    for number, row in enumerate(rows[loop.n_initial :], loop.n_initial + 1):
        place = loop.X[row, 0], y[row]
        axes.annotate(str(number), place, (0, 4), textcoords="offset points", fontsize=6, ha="center")
    axes.set(xlabel="x", ylabel="y", ylim=(-2, 2), title=title)


def draw(found, y):
    """Draw both loops and their learning curves."""
    figure = Figure(figsize=(9, 8), layout="constrained")
    top, middle, bottom = figure.subplots(3, 1)
    for axes, (name, loop) in zip((top, middle), found.items(), strict=True):
        draw_fit(axes, loop, y, f"rows by {name.replace('_', ' ')}" if name != "random" else "rows at random")
        history = loop.history.groupby("n_rows").last()
        bottom.plot(history.index, history["rmse"], "o-", label=axes.get_title())
    top.legend(loc="upper left", ncols=5, fontsize="small", frameon=False)
    bottom.axhline(NOISE, color="0.4", ls=":", label="noise")
    bottom.set(xlabel="answers", ylabel="RMSE on test rows", yscale="log")
    bottom.legend(fontsize="small")
    figure.savefig("active.png", dpi=130)
    print("picture: active.png")


if __name__ == "__main__":
    model = MetaGPRegressor(hidden_layer_sizes=(20,), input_kernel="rbf", max_iter=1000)
    found = loops(0, model, n_observations=40, n_queries=5)
    for name, loop in found.items():
        print(f"{name}\n{loop.history.groupby('n_rows').last()[['rmse', 'nll', 'seconds', 'fresh']].round(3)}\n")
    draw(found, problem(0)[0][1])
