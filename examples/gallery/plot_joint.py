"""
Predictions of neighbouring rows are wrong together
===================================================

One function is behind all predictions, so their errors are correlated. ``draws`` are such functions, and ``covariance``
says how the values at any two rows go together. For the sum over a stretch without data this matters: as if rows were
independent, its standard deviation would come out several times too small.
"""

import matplotlib.pyplot as plt
import numpy as np

from metaprior import MetaGPRegressor, plots

rng = np.random.default_rng(0)
X = np.concatenate([rng.uniform(-2, -0.6, (50, 1)), rng.uniform(0.6, 2, (50, 1))])
y = np.cos(2 * X[:, 0]) + 0.1 * rng.standard_normal(100)
model = MetaGPRegressor(input_kernel="rbf", random_state=0).fit(X, y)

grid = np.linspace(-2, 2, 81)
predicted = model.predict_distribution(grid[:, None])
covariance = predicted.covariance()
gap = np.abs(grid) < 0.6
together, alone = np.sum(covariance[np.ix_(gap, gap)]), np.trace(covariance[np.ix_(gap, gap)])
print(f"standard deviation of the sum of the {gap.sum()} values in the gap: {np.sqrt(together):.2f}")
print(f"as if they were independent: {np.sqrt(alone):.2f}")

std = np.sqrt(np.diag(covariance))
with plots.style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), width_ratios=(3, 2))
    image = right.imshow(
        covariance / np.outer(std, std), cmap="RdBu_r", vmin=-1, vmax=1, origin="lower", extent=(-2, 2, -2, 2)
    )
    right.grid(visible=False)
    right.set(xlabel="x", ylabel="x", title="correlation of f(x) with f(x)")
    figure.colorbar(image, ax=right)
    predicted.plot(n_draws=12, ax=left)
    left.plot(X, y, "k.", label="data")
plt.show()
