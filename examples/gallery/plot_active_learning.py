"""
Which label next?
=================

Labels are expensive, and a pool of 200 inputs waits for them. The loop starts with five random rows and then asks, four
at a time, for those whose labels would tell it most about the function. The first picture is the model after the five
labels, the second one after 17. The rows asked for are spread over the pool, and none is next to another.
"""

import matplotlib.pyplot as plt
import numpy as np

from metaprior import MetaGPRegressor, plots
from metaprior.decisions import PoolLoop

rng = np.random.default_rng(0)
pool = rng.uniform(-3, 3, (200, 1))
labels = np.sin(2 * pool[:, 0]) + 0.1 * rng.standard_normal(200)

model = MetaGPRegressor(input_kernel="rbf", max_iter=1000)
loop = PoolLoop(model, pool, acquisition="joint_information", n_initial=5, n_queries=4, random_state=0)
with plots.style():
    figure, axes = plt.subplots(2, 1, figsize=(7, 6), sharex=True, sharey=True)
    for panel, n_labels in zip(axes, (5, 17), strict=True):
        loop.run(labels, n_observations=n_labels)
        plots.plot_fit(loop.model, pool, n_draws=0, ax=panel)
        panel.plot(pool[loop.rows], labels[loop.rows], "ko", ms=4, label="labels")
        panel.plot(pool, np.full(200, -2.8), "|", color="0.5", ms=5, label="pool")
        panel.set_title(f"{n_labels} labels")
    axes[0].set(xlabel="", ylim=(-3, 3))
    plots.legend_below(figure)
plt.show()
