"""Cross-conformal prediction for a regressor (CV+, and jackknife+ with as many folds as rows).

No row is lost to calibration: each is scored by the model that was fitted without its fold. A new row x gets, for every
row i of the data, the band at x of the model without i, widened by the score of i. The interval reaches from the
floor((n + 1) (1 - level))-th smallest of the low ends to the ceil((n + 1) level)-th smallest of the high ends. It
contains y with a probability of at least 2 level - 1 (for few folds less about 1 / sqrt(n); Barber et al., 2021), and
of about `level` in practice.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import check_is_fitted, column_or_1d

from metaprior.conformal.interval_scores import Band, band_rule
from metaprior.conformal.ranks import check_level, conformal_rank, warn_of_too_few
from metaprior.estimators.checks import is_whole

#: Numbers that are sorted at once: 80 megabytes.
MOST_NUMBERS = 10_000_000


@dataclass(eq=False, repr=False)
class CrossConformalRegressor(MetaEstimatorMixin, RegressorMixin, BaseEstimator):
    """Intervals that use every row for both the fit and the calibration (CV+).

    They contain y with a probability that is guaranteed to be about 2 level - 1 at least, and is about `level` in
    practice. A fit takes as many fits of the estimator as there are folds, and one of all rows for `predict`.

    Parameters
    ----------
    estimator : regressor
        A regressor of this library, or any other of scikit-learn. Clones of it are fitted.
    level : float, default=0.9
        The probability that an interval contains y.
    conformity_score : {"quantile", "normalised", "absolute"}, default="quantile"
        What is calibrated; see `ConformalRegressor`.
    cv : int, splitter or iterable of (train, test), default=5
        The folds: their number, for folds of random rows; or a splitter in which each row is tested once.
        As many folds as rows are the jackknife+.
    random_state : int, RandomState instance or None, default=None
        Decides the folds if `cv` is a number.

    Attributes
    ----------
    estimator_ : regressor
        The estimator fitted to all rows.
    estimators_ : list of regressors
        The estimator fitted to all rows but those of each fold.
    scores_ : list of ndarray
        The scores of the rows of each fold.

    References
    ----------
    Barber, Candes, Ramdas, Tibshirani (2021). Predictive inference with the jackknife+. Annals of Statistics 49.
    """

    estimator: Any
    _: KW_ONLY
    level: float = 0.9
    conformity_score: str = "quantile"
    cv: Any = 5
    random_state: int | np.random.RandomState | None = None

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the estimator without each fold, and score the rows of the fold.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        check_level(self.level)
        rule = band_rule(self.conformity_score, self.estimator)
        X, y = indexable(X, column_or_1d(y))
        models, scores = [], []
        for train, test in self._folds(X, y):
            model = clone(self.estimator).fit(_safe_indexing(X, train), y[train])
            models.append(model)
            scores.append(rule(model, _safe_indexing(X, test), self.level).scores(np.asarray(y[test], np.float64)))
        warn_of_too_few(len(y), self.level, "All intervals are infinite")
        self.estimators_, self.scores_ = models, scores
        self.estimator_ = clone(self.estimator).fit(X, y)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return what the estimator that was fitted to all rows predicts, [n_samples]."""
        check_is_fitted(self)
        return self.estimator_.predict(X)

    def predict_interval(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the low and the high ends of the intervals, [n_samples] each. Cost: rows of X times rows of the data.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        bands = [band_rule(self.conformity_score, model)(model, X, self.level) for model in self.estimators_]
        num_new, num_rows = len(bands[0].low), sum(map(len, self.scores_))
        step = max(1, MOST_NUMBERS // num_rows)
        low, high = np.empty(num_new), np.empty(num_new)
        for start in range(0, num_new, step):
            rows = slice(start, start + step)
            own = [Band(*(part[rows] for part in band)) for band in bands]
            low[rows], high[rows] = self._ends(own)
        crossed = low > high
        low[crossed] = high[crossed] = 0.5 * (low[crossed] + high[crossed])
        return low, high

    def _ends(self, bands: list[Band]) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends at some rows."""
        pairs = list(zip(bands, self.scores_, strict=True))
        lows = np.concatenate([band.low[:, None] - np.outer(band.unit, s) for band, s in pairs], axis=1)
        highs = np.concatenate([band.high[:, None] + np.outer(band.unit, s) for band, s in pairs], axis=1)
        rank = conformal_rank(lows.shape[1], self.level)
        # the lowest end at the same rank counted from above: floor((n + 1) (1 - level)) = n + 1 - ceil((n + 1) level)
        return -_smallest(-lows, rank), _smallest(highs, rank)

    def _folds(self, X: Any, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the folds, or raise an error unless each row is in one of them."""
        cv = KFold(self.cv, shuffle=True, random_state=self.random_state) if is_whole(self.cv) else check_cv(self.cv)
        folds = list(cv.split(X, y))
        tested = np.sort(np.concatenate([test for _, test in folds]))
        if not np.array_equal(tested, np.arange(len(y))):
            raise ValueError("cv: expected folds that test each row once; use KFold, GroupKFold or a number of folds.")
        return folds

    def __sklearn_is_fitted__(self) -> bool:
        """Whether all estimators have been fitted."""
        return hasattr(self, "estimator_")


def _smallest(values: np.ndarray, rank: int) -> np.ndarray:
    """Return the smallest value of each line at a rank, counted from 1; infinity if there are fewer."""
    if rank > values.shape[1]:
        return np.full(len(values), np.inf)
    return np.partition(values, rank - 1, axis=1)[:, rank - 1]
