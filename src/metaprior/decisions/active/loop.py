"""Pool-based active learning: ask for the targets of some rows of a pool, refit with the answers, and ask again.

The random numbers of the n-th question depend only on the seed and on n.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.utils import check_array

from metaprior.decisions.active.acquisition import Acquisition, check_acquisition, choose, random_choice
from metaprior.decisions.active.batch import Choice
from metaprior.decisions.active.checks import checked_oracle, checked_pair, checked_rows, checked_targets, expect_alike
from metaprior.decisions.active.query_log import QueryLog
from metaprior.decisions.base import Loop, one_at_a_time
from metaprior.decisions.content import expect_content
from metaprior.decisions.warm_start import WarmStartedModel
from metaprior.estimators.checks import expect, is_whole
from metaprior.estimators.renamed import accepts_old_keywords
from metaprior.io.renamed import LOOP_PARAMETERS

if TYPE_CHECKING:
    import pandas as pd


class Question(NamedTuple):
    """Rows of the pool to label, their inputs, and their acquisition values (NaN for random rows)."""

    rows: np.ndarray
    X: np.ndarray
    values: np.ndarray


class PoolLoop(Loop[QueryLog]):
    """Pool-based active learning, step by step (`ask`, `tell`) or all at once (`run`).

    Parameters
    ----------
    estimator : estimator
        An estimator of this library (anything with `predict_distribution`), a regressor with
        `predict(X, return_std=True)`, a classifier with `predict_proba`, or a pipeline or search that ends in one of
        them. It is cloned and never changed.
    X : array-like of shape (n_rows, n_features)
        The pool: inputs whose targets may be asked for.
    acquisition : str or callable, default="variance"
        "variance" (epistemic), "entropy", "mutual_information" (BALD), "prediction_information" (what an answer would
        tell about the answers elsewhere; regression only), "joint_information" (rows that are most informative
        together), "random", or a function from a predictive distribution to one number per row; see `choose`.
    n_queries : int, default=1
        Number of rows per question.
    n_initial : int, default=5
        Number of answers before the first fit; until then rows are chosen at random. Rows of `labelled` count.
    labelled : tuple (X, y), default=None
        Rows outside the pool whose targets are known from the start.
    test : tuple (X, y), default=None
        Rows on which every fit is scored, for `history`.
    warm_start : bool, default=True
        Whether a fit may continue from the last one, which only estimators of this library can do.
    warm_iter : int, default=None
        Number of steps of a fit that continues from the last one. None means 0.3 of the estimator's `max_iter`.
    random_state : int, default=None
        Seed of the questions and of the fits. An estimator whose own `random_state` is an integer keeps it. None draws
        a seed, which the attribute `random_state` and the file then hold.
    path : str or path, default=None
        File to which the loop is saved after every call. It must not exist yet; `PoolLoop.load` resumes from a file.

    Attributes
    ----------
    path : Path or None
        Can be set to save elsewhere from the next call on.
    acquisition : str or callable
        Can be set to choose differently from the next question on.

    Examples
    --------
    >>> import numpy as np
    >>> from metaprior.baselines import ExactGPRegressor
    >>> from metaprior.decisions import PoolLoop
    >>> pool = np.linspace(-3, 3, 200)[:, None]
    >>> loop = PoolLoop(ExactGPRegressor(), pool, random_state=0)
    >>> for _ in range(3):
    ...     question = loop.ask()
    ...     loop.tell(np.sin(question.X[:, 0]))
    >>> loop.n_observed
    7
    """

    kind = "active"
    setting_names = (
        "X",
        "acquisition",
        "n_queries",
        "n_initial",
        "labelled",
        "test",
        "warm_start",
        "warm_iter",
        "random_state",
    )
    _model: WarmStartedModel

    @accepts_old_keywords(LOOP_PARAMETERS)
    def __init__(
        self,
        estimator: Any,
        X: Any,
        *,
        acquisition: str | Acquisition = "variance",
        n_queries: int = 1,
        n_initial: int = 5,
        labelled: tuple[Any, Any] | None = None,
        test: tuple[Any, Any] | None = None,
        warm_start: bool = True,
        warm_iter: int | None = None,
        random_state: int | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        self.X = check_array(X, dtype=np.float64, input_name="X", copy=True)
        for name, value in (("n_queries", n_queries), ("n_initial", n_initial)):
            expect(name, value, "a whole number of at least 1", is_whole(value) and value >= 1)
        model = WarmStartedModel(estimator, warm_iter, warm_start=warm_start)
        check_acquisition(acquisition, model.has_draws)
        super().__init__(model, random_state, path)
        self.acquisition, self.n_queries, self.n_initial = acquisition, int(n_queries), int(n_initial)
        self.warm_start, self.warm_iter = warm_start, warm_iter
        self.labelled = checked_pair("labelled", labelled, self.X.shape[1], classes=model.classifies)
        self.test = checked_pair("test", test, self.X.shape[1], classes=model.classifies)
        self._commit(QueryLog())

    # --- questions and answers ----------------------------------------------------

    @one_at_a_time
    def ask(self) -> Question:
        """Return the rows to label next. Until they are told or skipped, the same rows are returned.

        Fits the model to all answers so far. Before the first fit, rows are chosen at random.
        """
        if not self._state.pending:
            free = self._state.free(len(self.X))
            if not len(free):
                raise ValueError(f"ask: all {len(self.X)} rows of the pool are answered or skipped; none is left.")
            log, model, chosen = self._chosen(free)
            self._commit(log.with_question(free[chosen.rows], chosen.values), model)
        return self.pending

    @one_at_a_time
    def tell(self, y: Any, rows: Any = None) -> None:
        """Add answers.

        Parameters
        ----------
        y : array-like of shape (n,) or (n, n_targets), or a number
            Targets, or class labels.
        rows : array-like of int, default=None
            The rows of the pool that the answers belong to, pending or not. None means the rows of the pending
            question, in the same order. Rows of the question without an answer stay pending.
        """
        targets = checked_targets("tell: y", y, classes=self._model.classifies)
        answered = self._rows_meant("tell", rows)
        if len(targets) != len(answered):
            raise ValueError(
                f"tell: expected {len(answered)} answers, one for each row of {answered}; got {len(targets)}."
            )
        expect_alike("tell", self._known()[1], targets)
        self._commit(self._state.with_answers(answered, targets))

    @one_at_a_time
    def skip(self, rows: Any = None) -> None:
        """Never ask again for rows that cannot be answered. None means those of the pending question."""
        self._commit(self._state.with_skipped(self._rows_meant("skip", rows)))

    @accepts_old_keywords(LOOP_PARAMETERS)
    def run(self, source: Any, n_observations: int, *, verbose: bool = False) -> Self:
        """Ask and tell until `n_observations` rows of the pool are answered or none is left, then fit once more.

        Parameters
        ----------
        source : array-like or callable
            The targets of all rows of the pool, or a function from inputs to targets.
        n_observations : int
            The total number of answered rows. A last question of several rows is answered completely.
        verbose : bool, default=False
            Show a progress bar on stderr.

        Returns
        -------
        self
        """
        super().run(source, n_observations, verbose=verbose)
        if not self._n_missing():
            _ = self.model
        return self

    def _checked_source(self, source: Any) -> Callable[[np.ndarray, np.ndarray], Any]:
        return checked_oracle(source, len(self.X))

    def _can_ask(self) -> bool:
        return len(self._state.free(len(self.X))) > 0

    def _play_round(self, source: Callable[[np.ndarray, np.ndarray], Any], n_left: int) -> None:
        question = self.ask()
        self.tell(source(question.rows, question.X), rows=question.rows)

    # --- results ------------------------------------------------------------------

    @property
    def pending(self) -> Question:
        """The question that is not answered yet. It has no rows if nothing is pending."""
        log = self._state
        rows = np.array(log.pending, int)
        return Question(rows, self.X[rows], np.array(log.pending_values, float))

    @property
    def rows(self) -> np.ndarray:
        """The rows of the pool that are answered, in the order of the answers."""
        return np.array(self._state.rows, int)

    @property
    def n_observed(self) -> int:
        """The number of rows of the pool that are answered."""
        return len(self._state.rows)

    @property
    @one_at_a_time
    def model(self) -> Any:
        """The estimator fitted to all answers so far."""
        missing = self._n_missing()
        if missing:
            raise ValueError(f"model: at least {missing} more answer(s) are needed for a first fit; ask and tell.")
        log, model = self._with_fit()
        if log is self._state:  # a fit that the file knows of, repeated because the file does not contain it
            self._model = model
        else:
            self._commit(log, model)
        return self._model.fitted

    @property
    def history(self) -> "pd.DataFrame":
        """One row per answer, with the scores of the first fit that used the answer; needs pandas.

        The columns of an answer are the number of the `observation`, its `row` of the pool and its `acquisition` value
        (missing for random rows). The columns of the fit are the `n_rows` that it used, the `seconds` it took, whether
        it was `fresh` and, if there is a `test`, its `rmse` (or `accuracy`) and `nll` there. The `nll` is infinite if
        the test has a class that no answer had yet. The columns are missing if there is no such fit yet. Observation 0
        is the fit to `labelled` alone, if there was one.
        """
        return super().history.astype({"row": "Int64", "n_rows": "Int64", "fresh": "boolean"})

    def _history_columns(self) -> dict[str, Any]:
        names = () if self.test is None else ("accuracy" if self._model.classifies else "rmse", "nll")
        return self._state.columns(self._n_labelled(), names)

    # --- fits and choices -----------------------------------------------------------

    def _chosen(self, free: np.ndarray) -> tuple[QueryLog, WarmStartedModel, Choice]:
        """Return the log and the model, with a new fit if one was needed, and which of the free rows to ask for."""
        rng = np.random.default_rng([self.random_state, self._state.n_asked])
        missing = self._n_missing()
        if missing:
            return self._state, self._model, random_choice(len(free), missing, rng)
        check_acquisition(self.acquisition, self._model.has_draws)
        log, model = self._with_fit()
        if self.acquisition == "random":
            return log, model, random_choice(len(free), self.n_queries, rng)
        return log, model, choose(self.acquisition, model.predictive(self.X[free]), self.n_queries, rng)

    def _with_fit(self) -> tuple[QueryLog, WarmStartedModel]:
        """Return the log and the model with a fit to all answers. The loop stays as it is."""
        X, y = self._known()
        assert y is not None
        model = self._model.refitted(X, y, self._fit_seed(len(X)))
        if model.last_fit is None or self._state.has_fit(len(X)):
            return self._state, model
        scores = {} if self.test is None else model.scores(*self.test)
        return self._state.with_fit({**model.last_fit._asdict(), **scores}), model

    def _known(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Return all inputs and targets so far, those of `labelled` first."""
        parts = [] if self.labelled is None else [self.labelled]
        if self._state.targets is not None:
            parts.append((self.X[self.rows], self._state.targets))
        if not parts:
            return self.X[:0], None
        return np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts])

    def _rows_meant(self, call: str, rows: Any) -> list[int]:
        """Return the given rows, or those of the pending question if none are given."""
        return checked_rows(call, self.pending.rows if rows is None else rows, self._state.free(len(self.X)))

    def _n_missing(self) -> int:
        """Return how many more answers a first fit needs. It needs `n_initial`, and a classifier two classes."""
        y = self._known()[1]
        if y is None or len(y) < self.n_initial:
            return self.n_initial - (0 if y is None else len(y))
        return self.n_queries if self._model.classifies and len(np.unique(y)) < 2 else 0

    # --- files --------------------------------------------------------------------

    def _settings(self) -> dict[str, Any]:
        named = isinstance(self.acquisition, str)
        return {**super()._settings(), "acquisition": self.acquisition if named else None}

    @classmethod
    def _checked_settings(cls, settings: Any) -> dict[str, Any]:
        named = super()._checked_settings(settings)["acquisition"]
        expect_content("acquisition", named, "a name or None", named is None or isinstance(named, str))
        return settings

    @classmethod
    def _from_settings(cls, settings: dict[str, Any], model: WarmStartedModel | None) -> Self:
        if model is None:
            raise ValueError("model: expected a model; got None.")
        if settings["acquisition"] is None:
            raise ValueError("the acquisition was a function, which is not in the file; pass acquisition=...")
        return cls(model.template, **settings)

    def _checked_state(self, fields: Any) -> QueryLog:
        log = QueryLog.checked(fields, len(self.X), self._n_labelled(), classes=self._model.classifies)
        if self.labelled is not None and log.targets is not None:
            expect_alike("targets", self.labelled[1], log.targets)
        return log

    def _data_shape(self) -> tuple[int, int]:
        return self._n_labelled() + self.n_observed, self.X.shape[1]

    def _n_labelled(self) -> int:
        return 0 if self.labelled is None else len(self.labelled[0])

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], estimator: Any = None, *, acquisition: str | Acquisition | None = None
    ) -> Self:
        """Load a loop from its file. It continues where it stopped, and saves to the same file.

        Parameters
        ----------
        path : str or path
            A file that a loop has written. Files from untrusted sources are safe to load: no code in them is run.
        estimator : estimator, default=None
            The loop's estimator, needed if it is from another library, because files do not contain those.
        acquisition : str or callable, default=None
            The acquisition from the next question on, needed if it was a function. None keeps the saved one.
        """
        return cls._loaded(path, estimator, {} if acquisition is None else {"acquisition": acquisition})
