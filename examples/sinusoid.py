"""The sinusoid of the paper's Figure 6 and Table 1, by MetaGP-local with a periodic input kernel and defaults."""

import time

import numpy as np
from matplotlib.figure import Figure

from metaprior import MetaGPRegressor, kernels
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

x = np.linspace(-4.5, 4.5, 600)[:, None]
predicted = model.predict_distribution(x)
figure = Figure(figsize=(9, 3.6), layout="constrained")
axes = figure.add_subplot()
axes.axvspan(-2, 2, color="0.95", label="range of the data")
for level, shade in ((0.95, 0.18), (0.5, 0.32)):
    axes.fill_between(x[:, 0], *predicted.interval(level), alpha=shade, color="C0", lw=0, label=f"{level:.0%} interval")
axes.plot(x, model.sample_y(x, n_samples=6), color="C1", lw=0.7, alpha=0.8)
axes.plot([], [], color="C1", lw=0.7, label="function draws")
axes.plot(x[:, 0], predicted.mean, color="C0", lw=2, label="mean")
axes.plot(*parts["train"], ".", color="k", ms=4, label="training points")
axes.set(xlabel="x", ylabel="y", xlim=(-4.5, 4.5), title="MetaGP-local, periodic input kernel, no period given")
axes.legend(loc="upper center", ncols=6, fontsize="small", bbox_to_anchor=(0.5, -0.15), frameon=False)
figure.savefig("sinusoid.png", dpi=130)
print("picture: sinusoid.png")
