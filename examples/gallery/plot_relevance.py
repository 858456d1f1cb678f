"""
Which columns matter?
=====================

The target depends on the first five of these ten columns and not on the others. The input kernel has a lengthscale for
every column, and the fit learns them. The picture shows the standard deviation of every column over its lengthscale.
The three columns on which the target depends by a curve stand out. On ``x3`` and ``x4`` it depends by a straight line,
which the layers below the output see for themselves, so the kernel leaves it to them.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_friedman1

from metaprior import MetaGPRegressor, plots

X, y = make_friedman1(100, n_features=10, noise=0.5, random_state=0)
model = MetaGPRegressor(input_kernel="rbf", random_state=0).fit(X, y)
axes = plots.plot_relevance(model)
plt.show()
