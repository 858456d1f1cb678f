"""
What more data would tell, and what they would not
==================================================

The variance of a prediction has two parts. The epistemic one says that the function is not known: it is large in the
gap and beyond the data, and more data there would remove it. The aleatoric one is the noise of the observations: it is
large where these scatter, and no amount of data removes it.
"""

import matplotlib.pyplot as plt
import numpy as np

from metaprior import MetaGPRegressor, plots
from metaprior.plots.style import legend_above

rng = np.random.default_rng(0)
X = np.concatenate([rng.uniform(-3, -0.5, (40, 1)), rng.uniform(1, 3, (20, 1))])
y = np.sin(2 * X[:, 0]) + np.where(X[:, 0] > 0, 0.05, 0.4) * rng.standard_normal(60)

model = MetaGPRegressor(input_kernel="rbf", likelihood="heteroscedastic", max_iter=600, random_state=0).fit(X, y)
grid = np.linspace(-4, 4, 300)
predicted = model.predict_distribution(grid[:, None])

with plots.style():
    figure, (above, below) = plt.subplots(2, 1, figsize=(7, 6), sharex=True)
    predicted.plot(n_draws=0, ax=above)
    above.plot(X, y, "k.", label="data")
    above.set_xlabel("")
    legend_above(above)
    below.plot(grid, np.sqrt(predicted.epistemic_variance), label="epistemic: the function is not known")
    below.plot(grid, np.sqrt(predicted.aleatoric_variance), label="aleatoric: the observations are noisy")
    below.set(xlabel="x", ylabel="standard deviation")
    legend_above(below)
plt.show()
