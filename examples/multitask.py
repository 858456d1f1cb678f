"""Four sinusoids of different frequencies share a network below its output layer. A fifth needs only a linear solve."""

import time

import numpy as np
from matplotlib.figure import Figure

from metaprior import MetaGPRegressor, kernels, plots
from metaprior.multitask import MultiTaskRegressor
from metaprior.plots.curves import draw_points
from metaprior.plots.style import DRAWS, MEAN

TOGETHER, NEW = (0.4, 0.5, 0.7, 0.8), 0.6
rng = np.random.default_rng(0)


def wave(frequency, num_rows, low=-2.0, high=2.0):
    x = rng.uniform(low, high, (num_rows, 1))
    return x, np.sin(2 * np.pi * frequency * x[:, 0]) + 0.1 * rng.standard_normal(num_rows)


def scores(predicted, y):
    return f"RMSE {np.sqrt(np.mean((predicted.mean - y) ** 2)):.3f}  NLL {-np.mean(predicted.log_prob(y)):6.3f}"


tasks = {f"frequency {f}": wave(f, 100) for f in TOGETHER}
new, inside, outside = wave(NEW, 100), wave(NEW, 500), wave(NEW, 500, 2, 4)
params = {"input_kernel": kernels.Periodic(), "random_state": 0}

started = time.perf_counter()
model = MultiTaskRegressor(**params, verbose=True).fit(tasks)
print(f"four tasks in {time.perf_counter() - started:.1f} s, {model.n_iter_} steps")
for steps in (0, 30, 300):
    model.set_params(adapt_iter=steps, verbose=False).adapt("new", *new)
    for place, (x, y) in {"inside": inside, "outside": outside}.items():
        print(f"{steps:5d} steps, {place:8s} adapted:      {scores(model.predict_distribution(x, task='new'), y)}")
for steps in (30, 300, 3000):
    alone = MetaGPRegressor(**params, max_iter=steps).fit(*new)
    for place, (x, y) in {"inside": inside, "outside": outside}.items():
        print(f"{alone.n_iter_:5d} steps, {place:8s} from scratch: {scores(alone.predict_distribution(x), y)}")

grid = np.linspace(-4, 4, 500)[:, None]
with plots.style():
    figure = Figure(figsize=(9, 8))
    panels = figure.subplots(5, 1, sharex=True, sharey=True)
    for axes, (name, (x, y)) in zip(panels, {**tasks, "new": new}.items(), strict=True):
        predicted = model.predict_distribution(grid, task=name)
        colour = DRAWS if name == "new" else MEAN
        axes.axvspan(-2, 2, color="0.95", zorder=0)
        axes.fill_between(grid[:, 0], *predicted.interval(0.95), alpha=0.25, color=colour, lw=0)
        axes.plot(grid[:, 0], predicted.mean, color=colour, lw=1.5)
        draw_points(axes, x, y)
        period = float(model.estimator(name).input_kernel_.period[0])
        known = f"{name}, of the joint fit"
        how = f"new: frequency {NEW}, adapted in {model.adapt_iter} steps" if name == "new" else known
        axes.set(title=f"{how}; period {period:.3f}", ylabel="y")
    panels[-1].set(xlabel="x", xlim=(-4, 4), ylim=(-1.6, 1.6))
    figure.savefig("multitask.png", dpi=130)
print("picture: multitask.png")
