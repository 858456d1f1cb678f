"""
A classifier that says "I don't know"
=====================================

Both classifiers separate the two moons. The shade is the entropy of the predicted class: white is sure, dark grey is no
idea. A plain Bayesian network is sure of one class or the other in large parts of the plane, also where it has never
seen anything. With an RBF input kernel, the entropy returns to its maximum away from the data.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from metaprior import MetaGPClassifier, plots
from metaprior.baselines import MFVIClassifier
from metaprior.plots.style import COLOURS

X, y = make_moons(100, noise=0.15, random_state=0)
side = np.linspace(-5, 6, 60)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
models = {
    "input kernel RBF": MetaGPClassifier(input_kernel="rbf", random_state=0),
    "independent weights": MFVIClassifier(random_state=0),
}

with plots.style():
    figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharex=True, sharey=True)
    for panel, (name, model) in zip(axes, models.items(), strict=True):
        entropy = model.fit(X, y).predict_distribution(grid).entropy.reshape(60, 60)
        shade = panel.pcolormesh(side, side, entropy, cmap="Greys", vmin=0, vmax=1.3 * np.log(2), rasterized=True)
        for label in (0, 1):
            panel.scatter(*X[y == label].T, s=16, color=COLOURS[label], ec="white", lw=0.4, label=f"class {label}")
        panel.grid(visible=False)
        panel.set(xlabel="x0", title=name)
    axes[0].set_ylabel("x1")
    bar = figure.colorbar(shade, ax=axes, label="entropy (nats)", boundaries=np.linspace(0, np.log(2), 100))
    bar.set_ticks([0, 0.2, 0.4, 0.6])
    plots.legend_below(figure)
plt.show()
