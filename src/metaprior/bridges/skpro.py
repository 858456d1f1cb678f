"""A regressor of this library in the interface of skpro, which sktime takes, too.

With Gaussian noise the predictive distribution is skpro's `Mixture` of `Normal`s, and exact: it has the same density,
moments and quantiles as our own. With other noise it is skpro's `Empirical` distribution of draws.
"""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from skpro.distributions.empirical import Empirical
from skpro.distributions.mixture import Mixture
from skpro.distributions.normal import Normal
from skpro.regression.base import BaseProbaRegressor

from metaprior.estimators import MetaGPRegressor
from metaprior.predictive import Predictive


class SkproRegressor(BaseProbaRegressor):
    """A regressor of this library as a probabilistic regressor of skpro.

    Parameters
    ----------
    estimator : regressor, default=None
        Any regressor of this library. `fit` fits a clone of it. None means `MetaGPRegressor()`.
    random_state : int, default=0
        Decides the draws of a distribution that is no mixture of Gaussians.

    Attributes
    ----------
    estimator_ : regressor
        The fitted estimator.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from metaprior import MetaGPRegressor
    >>> from metaprior.bridges import SkproRegressor
    >>> X = pd.DataFrame({"x": np.linspace(0, 1, 12)})
    >>> model = SkproRegressor(MetaGPRegressor((5,), max_iter=20, random_state=0)).fit(X, X**2)
    >>> model.predict_interval(X, coverage=0.9).shape
    (12, 2)
    """

    _tags = {
        "authors": ["metaprior developers"],
        "capability:multioutput": True,
        "capability:missing": False,
        "X_inner_mtype": "pd_DataFrame_Table",
        "y_inner_mtype": "pd_DataFrame_Table",
    }

    def __init__(self, estimator: Any = None, random_state: int = 0) -> None:
        self.estimator = estimator
        self.random_state = random_state
        super().__init__()

    def _fit(self, X: pd.DataFrame, y: pd.DataFrame) -> "SkproRegressor":
        template = MetaGPRegressor() if self.estimator is None else self.estimator
        targets = y.to_numpy(np.float64)
        self._columns = y.columns
        self.estimator_ = clone(template).fit(_matrix(X), targets[:, 0] if targets.shape[1] == 1 else targets)
        return self

    def _predict(self, X: pd.DataFrame) -> pd.DataFrame:
        return self._frame(self._distribution(X).mean, X)

    def _predict_var(self, X: pd.DataFrame) -> pd.DataFrame:
        return self._frame(self._distribution(X).variance, X)

    def _predict_quantiles(self, X: pd.DataFrame, alpha: list[float]) -> pd.DataFrame:
        found = self._distribution(X).quantile(np.asarray(alpha, np.float64)).reshape(len(alpha), len(X), -1)
        columns = pd.MultiIndex.from_product([self._columns, alpha])
        return pd.DataFrame(np.moveaxis(found, 0, -1).reshape(len(X), -1), index=X.index, columns=columns)

    def _predict_proba(self, X: pd.DataFrame) -> "Mixture | Empirical":
        predicted = self._distribution(X)
        try:
            means, stds = predicted.gaussian_components()
        except AttributeError:
            return self._empirical(predicted, X)
        own = {"index": X.index, "columns": self._columns}
        shape = len(X), len(self._columns)
        normals = [
            Normal(mu=mean.reshape(shape), sigma=std.reshape(shape), **own)
            for mean, std in zip(means, stds, strict=True)
        ]
        # one component for a whole sample: rows that skpro draws apart would all be of the first component
        return Mixture(normals, indep_rows=False, indep_cols=False, **own)

    def _empirical(self, predicted: Predictive, X: pd.DataFrame) -> Empirical:
        """Return the distribution of draws of y."""
        drawn = predicted.sample(self.random_state)
        labels = [row if isinstance(row, tuple) else (row,) for row in X.index]
        rows = [(number, *label) for number in range(len(drawn)) for label in labels]
        index = pd.MultiIndex.from_tuples(rows, names=["sample", *X.index.names])
        table = pd.DataFrame(drawn.reshape(len(index), -1), index=index, columns=self._columns)
        return Empirical(table, time_indep=False, index=X.index, columns=self._columns)

    def _distribution(self, X: pd.DataFrame) -> Predictive:
        return self.estimator_.predict_distribution(_matrix(X))

    def _frame(self, values: np.ndarray, X: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame(values.reshape(len(X), -1), index=X.index, columns=self._columns)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return settings of small regressors, which the checks of skpro fit."""
        small = MetaGPRegressor((3,), max_iter=10, n_predict_draws=16, random_state=0)
        return [
            {"estimator": small},
            {"estimator": clone(small).set_params(likelihood="student_t", n_inducing=4), "random_state": 1},
        ]


def _matrix(X: pd.DataFrame) -> np.ndarray:
    return X.to_numpy(np.float64)
