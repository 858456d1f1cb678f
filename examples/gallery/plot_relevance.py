"""
Which columns matter?
=====================

Of these ten columns, the target depends on the first five and not on the others. The input kernel has a lengthscale for
every column, and the fit learns them. A long one means that the function hardly changes along this column. The picture
shows the standard deviation of every column over its lengthscale.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_friedman1

from metaprior import MetaGPRegressor, plots

X, y = make_friedman1(100, n_features=10, noise=0.5, random_state=0)
model = MetaGPRegressor(input_kernel="rbf", random_state=0).fit(X, y)
axes = plots.plot_relevance(model)
plt.show()
