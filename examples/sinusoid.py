"""The sinusoid of the paper's Figure 6 and Table 1, by MetaGP-local with a periodic input kernel and defaults.

A plain Bayesian network, with an independent normal prior for every weight, is drawn beside it. Writes sinusoid.png.
"""

import time

import numpy as np
from matplotlib.figure import Figure

from metaprior import MetaGPRegressor, kernels, plots
from metaprior.baselines import MFVIRegressor
from metaprior.datasets import sinusoid

PAPER = {"inside": (0.11, -0.76), "outside": (0.12, -0.69)}  # Table 1, MetaGP-Local[Periodic]: RMSE, NLL

parts = sinusoid(seed=0)
started = time.perf_counter()
model = MetaGPRegressor(input_kernel=kernels.Periodic(), random_state=0, verbose=True).fit(*parts["train"])
print(
    f"fitted in {time.perf_counter() - started:.1f} s; period {float(model.input_kernel_.period[0]):.3f} (true: 1.667)"
)

print(f"{'':10s}{'RMSE':>8s}{'paper':>8s}{'NLL':>8s}{'paper':>8s}")
for name, (paper_rmse, paper_nll) in PAPER.items():
    X, y = parts[name]
    predicted = model.predict_distribution(X)
    rmse, nll = np.sqrt(np.mean((predicted.mean - y) ** 2)), -np.mean(predicted.log_prob(y))
    print(f"{name:10s}{rmse:8.3f}{paper_rmse:8.2f}{nll:8.3f}{paper_nll:8.2f}")

x = np.linspace(-4.5, 4.5, 600)
plain = MFVIRegressor(random_state=0).fit(*parts["train"])
with plots.style():
    figure = Figure(figsize=(10, 3.6))
    panels = figure.subplots(1, 2, sharey=True)
    titles = ("MetaGP-local, periodic kernel, no period given", "Bayesian network with independent weights")
    for axes, fitted, title in zip(panels, (model, plain), titles, strict=True):
        plots.plot_fit(fitted, *parts["train"], n_points=600, margin=0.63, ax=axes)
        axes.plot(x, np.sin(2 * np.pi * 0.6 * x), "k--", lw=0.9, zorder=1.9, label="the wave")
        axes.axvspan(-2, 2, color="0.95", zorder=0, label="range of the data")
        axes.set_title(title)
    panels[0].set_ylim(-2.6, 2.6)
    panels[1].set_ylabel("")
    plots.legend_below(figure)
    figure.savefig("sinusoid.png", dpi=130)
print("picture: sinusoid.png")
