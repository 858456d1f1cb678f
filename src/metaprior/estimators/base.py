"""Estimators as scikit-learn knows them: `fit`, `predict`, `predict_distribution`, `sample_y`, `save`.

An estimator is a dataclass: its fields are its parameters, which scikit-learn reads from the signature. What they mean
is the business of its method (`method.py`) and of its kind of targets (`targets.py`). Nothing jitted hangs on an
estimator, and predicting adds no attribute, so it clones, pickles and copies.
"""

import abc
import os
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, check_random_state

from metaprior.estimators.checks import refuse_lost_digits, row_labels
from metaprior.estimators.fit import InputScaling, checked, prepare_fit, store_fit
from metaprior.estimators.method import Method
from metaprior.estimators.renamed import without_old_names
from metaprior.estimators.restored import check_names, check_restored
from metaprior.estimators.targets import ClassTargets, NoiseConfig, RegressionTargets, Targets
from metaprior.io.checkpoints import checkpoint_config
from metaprior.io.saving import save
from metaprior.kernels.base import with_changed_kernels
from metaprior.model import Model
from metaprior.predictive import Predictive
from metaprior.user_warnings import one_fit


class Estimator(BaseEstimator, abc.ABC):
    """What all estimators share: checked data in, a predictive distribution out."""

    random_state: int | np.random.RandomState | None

    @abc.abstractmethod
    def _method(self) -> Method:
        """Return how the model is fitted and asked, by the parameters of now."""

    @abc.abstractmethod
    def _targets_of(self, y: np.ndarray, weight: np.ndarray | None) -> Targets:
        """Return the kind of targets that y is, or raise; a row counts `weight` times."""

    @abc.abstractmethod
    def _fitted_targets(self) -> Targets:
        """Return the kind of targets of the last fit."""

    def _target_checks(self) -> dict[str, bool]:
        """Return what scikit-learn's validation is to ask of y."""
        return {}

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        every: int = 1000,
    ) -> Self:
        """Fit the posterior.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or (n_samples, n_targets) for a regressor
            Numbers for a regressor; class labels, numbers or strings, for a classifier.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts: 2 is the same as the row twice, and 0 as no row. None is 1 for every row.
        checkpoint : str or path, default=None
            A folder to keep the run in. If the run is killed, the same call goes on from there and ends with the same
            bits.
        every : int, default=1000
            Steps between two checkpoints, rounded up to hundreds.

        Returns
        -------
        self
        """
        with one_fit():
            prepared = prepare_fit(self, X, y, sample_weight)
            fitted = prepared.method.fit(prepared.problem, prepared.seed, checkpoint_config(checkpoint, every))
            store_fit(self, prepared, fitted)
        return self

    def predict_distribution(self, X: Any) -> Predictive:
        """Return the predictive distribution at X: mean, variances, quantiles, entropy, log density, draws.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        Predictive
        """
        check_is_fitted(self)
        inputs = checked(self, X)
        predictive = self._method().predictive(self, self._scaling()(inputs), self._fitted_targets())
        predictive.inputs, predictive.index = inputs, row_labels(X)
        return predictive

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Draw functions from the posterior, coherent over the rows of X (without observation noise).

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples), (n_samples_X, n_targets, n_samples) for several targets or
        (n_samples_X, n_classes, n_samples), class probabilities, for a classifier
        """
        check_is_fitted(self)
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        drawn = self._method().sampled(self, self._standardised(X), self._fitted_targets(), n_samples, seed)
        return np.moveaxis(drawn, 0, -1)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the fitted estimator to one file, which `metaprior.load` reads; no pickle.

        Parameters
        ----------
        path : str or path
            For instance "model.metaprior".
        overwrite : bool, default=False
            Whether a file that is there may be replaced.
        """
        check_is_fitted(self)
        save(self, path, overwrite=overwrite)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, by their present names or, for one release, their old ones.

        `input_kernel__lengthscale` replaces the input kernel by one with another lengthscale. Kernels do not change, so
        one that is also held elsewhere keeps its values.
        """
        present = without_old_names(params)
        return super().set_params(**with_changed_kernels(self.get_params(deep=False), present))

    def saved_state(self) -> dict[str, Any]:
        """Return what fitting has added, in parts that can be saved."""
        return {name: value for name, value in vars(self).items() if name not in self.get_params(deep=False)}

    def restore_state(self, state: dict[str, Any]) -> None:
        """Take back what `saved_state` gave, or raise an error if it is not what a fit leaves."""
        check_names(self, state)
        self.__dict__.update(state)
        check_restored(self)

    def _last_model(self) -> Model | None:
        """Return the model that `fit` goes on from; None where it begins anew."""
        is_warm = self.get_params(deep=False).get("warm_start", False)
        return vars(self).get("model_") if is_warm else None

    def _scaling(self) -> InputScaling:
        """Return the scaling of the inputs of the last fit."""
        return InputScaling(vars(self)["x_offset_"], vars(self)["x_scale_"])

    def _standardised(self, X: Any) -> np.ndarray:
        """Return checked inputs in standardised units."""
        return self._scaling()(checked(self, X))


class Regressor(RegressorMixin, Estimator):
    """Targets of one or several columns."""

    y_offset_: np.ndarray
    y_scale_: np.ndarray
    _flat: bool

    def __sklearn_tags__(self) -> Tags:
        """Several targets are welcome; counts must not be negative."""
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        tags.target_tags.positive_only = NoiseConfig.of(self).likelihood == "poisson"
        return tags

    def _target_checks(self) -> dict[str, bool]:
        return {"multi_output": True, "y_numeric": True}

    def _targets_of(self, y: np.ndarray, weight: np.ndarray | None) -> RegressionTargets:
        config = NoiseConfig.of(self)
        config.check()
        last = None if self._last_model() is None else self._fitted_targets()
        floats = y.astype(np.float64)
        refuse_lost_digits("y", y, floats)
        return RegressionTargets.of(floats, config, last, weight)

    def _fitted_targets(self) -> RegressionTargets:
        return RegressionTargets(self.y_offset_, self.y_scale_, self._flat, NoiseConfig.of(self))

    def predict(
        self, X: Any, return_std: bool = False, return_cov: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Predict the mean of y and, if asked, its standard deviation or its joint covariance.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_std : bool, default=False
            Whether to return the predictive standard deviation (function and noise) as well.
        return_cov : bool, default=False
            Whether to return the joint covariance of y over the rows as well: that of the functions, and the noise on
            the diagonal, so that the diagonal is the square of the standard deviation. (scikit-learn's
            GaussianProcessRegressor does the same if its kernel has a WhiteKernel.) The covariance of the functions
            alone is `predict_distribution(X).covariance()`.

        Returns
        -------
        mean, (mean, std) or (mean, covariance) : ndarray of shape (n_samples,) or (n_samples, n_targets)
            A covariance has the shape (n_samples, n_samples), or (n_samples, n_samples, n_targets).
        """
        if return_std and return_cov:
            raise RuntimeError("predict: expected at most one of return_std and return_cov; got both.")
        predictive = self.predict_distribution(X)
        if return_cov:
            return predictive.mean, predictive.covariance(noise=True)
        return (predictive.mean, predictive.std) if return_std else predictive.mean


class Classifier(ClassifierMixin, Estimator):
    """Targets that are labels."""

    classes_: np.ndarray

    def _targets_of(self, y: np.ndarray, weight: np.ndarray | None) -> ClassTargets:
        last = None if self._last_model() is None else self._fitted_targets()
        return ClassTargets.of(type(self).__name__, y, last)

    def _fitted_targets(self) -> ClassTargets:
        return ClassTargets(self.classes_)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities, [n_samples, n_classes], in the order of `classes_`."""
        return self.predict_distribution(X).probabilities

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of every row."""
        check_is_fitted(self)
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]
