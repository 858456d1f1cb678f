"""
A kernel search that explains itself
====================================

``kernels.search`` builds sums and products of kernels and compares them by their evidence. It describes every component
of the best one in a sentence. The result is a kernel in the units of the data, ready for the network, and the posterior
mean of every component can be drawn by itself.
"""

import matplotlib.pyplot as plt
import numpy as np

from metaprior import kernels, plots

rng = np.random.default_rng(0)
day = np.arange(100.0)
sales = 100 + 0.2 * day + 4 * np.sin(2 * np.pi * day / 7) + rng.standard_normal(100)

found = kernels.search(day, sales, depth=2, units="day")
for sentence in found.sentences:
    print("-", sentence)

# %%
# The components add up to the function, around its average.

with plots.style():
    figure, axes = plt.subplots(len(found.components) + 1, 1, figsize=(7, 6), sharex=True)
    axes[0].plot(day, sales, "k.")
    axes[0].set(ylabel="sales", title="data")
    for panel, component in zip(axes[1:], found.components, strict=True):
        panel.plot(day, component.mean)
        panel.set(ylabel="part", title=component.sentence)
    axes[-1].set_xlabel("day")
plt.show()
