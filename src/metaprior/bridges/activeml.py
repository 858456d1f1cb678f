"""A query strategy of scikit-activeml that asks where a predictive distribution of this library is least certain."""

from typing import Any

import numpy as np
from skactiveml.base import SingleAnnotatorPoolQueryStrategy
from skactiveml.utils import MISSING_LABEL, is_labeled, simple_batch
from sklearn.base import clone

from metaprior.estimators.checks import expect_one_of
from metaprior.predictive import Predictive
from metaprior.predictive.from_sklearn import distribution_predictor_of

#: What a row is chosen by, one number per row.
MEASURES = ("mutual_information", "entropy", "variance")


class PredictiveSampling(SingleAnnotatorPoolQueryStrategy):
    """Ask for the targets of the rows at which a predictive distribution is least certain.

    Parameters
    ----------
    measure : {"mutual_information", "entropy", "variance"}, default="mutual_information"
        "mutual_information" is what an observation tells of the function, on average (BALD). "entropy" is that of the
        target, noise and all. "variance" is that of the target, summed over targets or classes.
    missing_label : scalar, string or None, default=nan
        What stands for a target that is not known.
    random_state : int, RandomState instance or None, default=None
        Breaks ties.
    """

    def __init__(
        self, measure: str = "mutual_information", missing_label: Any = MISSING_LABEL, random_state: Any = None
    ) -> None:
        super().__init__(missing_label=missing_label, random_state=random_state)
        self.measure = measure

    def query(
        self,
        X: Any,
        y: Any,
        estimator: Any,
        fit_estimator: bool = True,
        candidates: Any = None,
        batch_size: int = 1,
        return_utilities: bool = False,
    ) -> Any:
        """Return the rows to ask for.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            All rows, with and without a target.
        y : array-like of shape (n_samples,)
            Their targets; `missing_label` where it is not known.
        estimator : regressor or classifier
            An estimator of this library, or a pipeline that ends with one.
        fit_estimator : bool, default=True
            Whether to fit a clone of it to the rows with a target first. Otherwise it has been fitted.
        candidates : array-like of shape (n_candidates,) or (n_candidates, n_features), default=None
            The numbers of the rows to choose from, or rows; None means all rows without a target.
        batch_size : int, default=1
            How many rows to ask for: those with the largest numbers.
        return_utilities : bool, default=False
            Whether to return the numbers as well.

        Returns
        -------
        query_indices, or (query_indices, utilities) : ndarray of shape (batch_size,) and (batch_size, n_samples)
        """
        X, y, candidates, batch_size, return_utilities = self._validate_data(
            X, y, candidates, batch_size, return_utilities, reset=True
        )
        expect_one_of("measure", self.measure, MEASURES)
        predict = distribution_predictor_of("estimator", estimator)
        rows, mapping = self._transform_candidates(candidates, X, y)
        if fit_estimator:
            known = is_labeled(y, missing_label=self.missing_label_)
            estimator = clone(estimator).fit(X[known], y[known])
        uncertainty = self._uncertainty(predict(estimator, rows))
        utilities = uncertainty
        if mapping is not None:
            utilities = np.full(len(X), np.nan)
            utilities[mapping] = uncertainty
        return simple_batch(utilities, self.random_state_, batch_size=batch_size, return_utilities=return_utilities)

    def _uncertainty(self, predicted: Any) -> np.ndarray:
        if self.measure == "mutual_information" and not isinstance(predicted, Predictive):
            raise TypeError(
                "measure='mutual_information': expected an estimator of this library, whose distribution tells the "
                "noise from the function; use 'entropy' or 'variance' for others."
            )
        found = np.asarray(getattr(predicted, self.measure))
        return found.sum(axis=1) if found.ndim == 2 else found
