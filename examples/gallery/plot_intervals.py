"""
Are the intervals right?
========================

A model is fitted to 100 rows of five columns and asked about 300 rows that it has not seen. On the left are the 95 %
intervals of half of these, in the order of the means, and the targets outside are marked. On the right, the line says
for every level how many of all targets lie inside. The grey band is what chance allows for a model whose intervals are
right. The line keeps to its upper edge, so these intervals are, if anything, a little wide.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_friedman1

from metaprior import MetaGPRegressor, plots

X, y = make_friedman1(400, n_features=5, noise=1.0, random_state=0)
model = MetaGPRegressor(input_kernel="rbf", random_state=0).fit(X[:100], y[:100])
predicted = model.predict_distribution(X[100:])

with plots.style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), width_ratios=(3, 2))
plots.plot_intervals(predicted, y[100:], ax=left)
plots.plot_calibration(predicted, y[100:], ax=right)
plt.show()
