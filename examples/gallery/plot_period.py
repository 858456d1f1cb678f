"""
Finding a period in uneven data
===============================

The brightness of a star was measured in 100 nights, at uneven times over two months. No wave can be seen in the raw
data. A periodic kernel without a period takes it from the spectrum of the data and learns it further with everything
else. Folded by the period that was found, the measurements lie on one curve.
"""

import matplotlib.pyplot as plt
import numpy as np

from metaprior import MetaGPRegressor, kernels, plots

PERIOD = 2.87
rng = np.random.default_rng(0)
night = np.sort(rng.uniform(0, 60, (100, 1)), axis=0)
phase = 2 * np.pi * night[:, 0] / PERIOD
brightness = np.sin(phase) + 0.5 * np.sin(2 * phase + 1) + 0.2 * rng.standard_normal(100)

model = MetaGPRegressor(input_kernel=kernels.Periodic(), random_state=0).fit(night, brightness)
found = float(model.input_kernel_.period[0])
print(f"the period is {PERIOD} days, and the fit found {found:.3f}")

grid = np.linspace(0, found, 200)
predicted = model.predict_distribution(grid[:, None])
with plots.style():
    figure, (above, below) = plt.subplots(2, 1, figsize=(7, 6), sharey=True)
    above.plot(night[:, 0], brightness, "k.")
    above.set(xlabel="night", ylabel="brightness", title="as measured")
    below.fill_between(grid, *predicted.interval(0.95), alpha=0.2, lw=0, label="95 % of y")
    below.plot(grid, predicted.mean, lw=2, label="mean")
    below.plot(night[:, 0] % found, brightness, "k.", label="data")
    below.set(
        xlabel=f"night modulo {found:.3f}", ylabel="brightness", title="folded by the period found", xlim=(0, found)
    )
    plots.legend_below(figure, below)
plt.show()
