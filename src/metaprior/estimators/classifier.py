"""The classifier: a network with a Gaussian-process weight prior behind scikit-learn's words."""

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from metaprior.estimators.base import MetaGPEstimator
from metaprior.kernels import RBF, Kernel
from metaprior.likelihoods import Bernoulli, Categorical
from metaprior.prediction import FunctionDraws, Predictive

#: The longest lengthscale of the usual kernel on the output unit's latent (whose prior has spread 1). Classes that the
#: prior ties together share their wins far from the data, and a class between two others hardly ever wins there: with
#: no bound the entropy on the far ring of the four-class data falls to 0.93 log 4 and less, with it stays above 0.97.
LONGEST_OUTPUT_LENGTHSCALE = 1.5


class MetaGPClassifier(ClassifierMixin, MetaGPEstimator):
    """Classification by a neural network whose weight prior is a Gaussian process.

    Two classes are told apart by one function (Bernoulli), more by one a class (categorical). The parameters are
    those of `MetaGPRegressor` less `likelihood` and `noise`. The usual `weight_kernel` differs in one thing: on the
    output unit's latent the lengthscale stays below 1.5, so that no class stands between others in the prior and the
    probabilities far from the data are even.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    model_, input_kernel_, elbo_history_, elbo_terms_, n_iter_ :
        As for `MetaGPRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from metaprior import MetaGPClassifier
    >>> X, y = make_moons(100, noise=0.1, random_state=0)
    >>> model = MetaGPClassifier(input_kernel="rbf", random_state=0).fit(X, y)
    >>> far_away = model.predict_distribution(100 + X).entropy
    """

    classes_: np.ndarray

    def fit(self, X: Any, y: Any) -> "MetaGPClassifier":
        """Fit the network's posterior.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels: numbers or strings.

        Returns
        -------
        self
        """
        X, y = self._checked(X, y)
        check_classification_targets(y)
        classes, labels = np.unique(column_or_1d(y, warn=True), return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"MetaGPClassifier: expected at least two classes; y has one class, {classes[0]!r}.")
        if self.warm_start and hasattr(self, "model_") and not np.array_equal(classes, self.classes_):
            raise ValueError(f"warm_start: expected the classes of the last fit, {self.classes_}; got {classes}.")
        self.classes_ = classes
        likelihood = Bernoulli() if len(classes) == 2 else Categorical()
        self._fit(X, labels[:, None].astype(np.float64), likelihood, 1 if len(classes) == 2 else len(classes))
        return self

    def _usual_weight_kernels(self) -> tuple[Kernel, Kernel]:
        return RBF(), RBF(bounds={"lengthscale": (1e-2, LONGEST_OUTPUT_LENGTHSCALE)})

    def _predictive(self, draws: FunctionDraws) -> Predictive:
        return Predictive(draws, self.model_.likelihood, np.zeros(1), np.ones(1), flat=True)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities, [n_samples, n_classes], in the order of `classes_`."""
        return self.predict_distribution(X).probabilities

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of every row."""
        check_is_fitted(self)
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Draw class-probability functions from the posterior, coherent over the rows of X.

        Returns
        -------
        ndarray of shape (n_samples_X, n_classes, n_samples)
        """
        return np.moveaxis(self._sampled(X, n_samples, random_state).draws(), 0, -1)
