"""
A sinusoid beside a plain Bayesian network
==========================================

Both networks see 100 points of a sinusoid between -2 and 2. The one on the left has a Gaussian process as the prior of
its weights, with a periodic input kernel whose period it finds itself, and goes on with the wave on both sides. The one
on the right has an independent normal prior for every weight (mean-field variational inference). It fits the wave
inside, and outside it goes on in flat lines, with a narrow band that leaves out the wave.
"""

import matplotlib.pyplot as plt

from metaprior import MetaGPRegressor, kernels, plots
from metaprior.baselines import MFVIRegressor
from metaprior.datasets import sinusoid

X, y = sinusoid(seed=0)["train"]
models = {
    "Gaussian process on the weights": MetaGPRegressor(input_kernel=kernels.Periodic(), random_state=0),
    "independent weights": MFVIRegressor(random_state=0),
}

with plots.style():
    figure, axes = plt.subplots(2, 1, figsize=(7, 6), sharex=True, sharey=True)
    for panel, (name, model) in zip(axes, models.items(), strict=True):
        plots.plot_fit(model.fit(X, y), X, y, margin=0.6, ax=panel)
        panel.set_title(name)
    axes[0].set(xlabel="", ylim=(-3, 3))
    plots.legend_below(figure)
plt.show()
