"""
Is this fit in order?
=====================

``diagnose`` looks at a fitted model and at rows that it has not seen, and says in sentences what is in order and what
is not. Here the noise grows with x while the model has a single noise level. The report finds that the distributions
are too wide for most rows, and names parameters to try. The remedy here is ``likelihood="heteroscedastic"``.
"""

import matplotlib.pyplot as plt
import numpy as np

import metaprior
from metaprior import MetaGPRegressor, plots

rng = np.random.default_rng(0)


def rows(count):
    """Return rows whose noise grows with x."""
    x = rng.uniform(0, 4, (count, 1))
    return x, np.sin(2 * x[:, 0]) + 0.02 * 3 ** x[:, 0] * rng.standard_normal(count)


X, y = rows(100)
X_new, y_new = rows(400)
model = MetaGPRegressor(input_kernel="rbf", random_state=0).fit(X, y)
print(metaprior.diagnose(model, X_new, y_new))

# %%
# The histogram of P(Y <= y) at the targets would be flat if the distributions were right. The peak in the middle says
# that most targets lie nearer to the mean than they should.

with plots.style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), width_ratios=(3, 2))
plots.plot_fit(model, X_new, y_new, margin=0, n_draws=0, ax=left)
plots.plot_calibration(model.predict_distribution(X_new), y_new, kind="pit", ax=right)
plt.show()
