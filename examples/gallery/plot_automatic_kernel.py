"""
The kernel that the data choose
===============================

By default the input kernel is chosen by the evidence lower bound (ELBO): some candidates are trained for a few steps,
and the fit goes on with the first one that no other is clearly above, by more than two nats. ``kernel_search_`` is the
table of them. Candidates with a period appear only where a wave stands out in the data. These data are a wave on a
line, and the bars show how many nats of the bound each candidate lies behind the one that was taken.
"""

import matplotlib.pyplot as plt
import numpy as np

from metaprior import MetaGPRegressor, plots

rng = np.random.default_rng(0)
X = rng.uniform(0, 10, (100, 1))
y = 0.3 * X[:, 0] + np.sin(2 * np.pi * X[:, 0] / 1.7) + 0.2 * rng.standard_normal(100)

model = MetaGPRegressor(random_state=0).fit(X, y)
table = model.kernel_search_
print(table.round(1).to_string(index=False))
print("fitted:", model.input_kernel_)

# %%
# The candidates, and the fit with the one that was taken.

with plots.style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), width_ratios=(2, 3))
    left.barh(table["kernel"], table["behind"], height=0.6)
    left.invert_yaxis()
    left.grid(visible=False, axis="y")
    left.set_xlabel("nats behind the kernel taken")
plots.plot_fit(model, X, y, margin=0.4, ax=right)
plt.show()
