"""The pool loop: ask which rows of a pool to have answered, be told, fit, ask again.

A loop is saved after every call: its settings, the pool, all answers, the open question and the last fit. What is
random in the n-th question depends on the seed and on n alone, and a question that is open is asked again. So a loop
that dies between any two calls goes on from its file with the same question.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.utils import check_array

from metaprior.active.acquisition import Acquisition, check_acquisition, choose, random_choice
from metaprior.active.batch import Choice
from metaprior.active.checks import checked_oracle, checked_pair, checked_rows, checked_targets
from metaprior.active.learner import Learner
from metaprior.active.ledger import Ledger
from metaprior.decisions.records import needed_pandas, read_loop, refuse_to_replace, write_loop
from metaprior.decisions.warm_start import RefittedModel
from metaprior.estimators.checks import expect, is_whole
from metaprior.estimators.progress import new_bar

if TYPE_CHECKING:
    import pandas as pd

#: What the file of a loop calls it.
KIND = "active"


class Question(NamedTuple):
    """Rows of the pool to have answered, their inputs, and what the acquisition says of each (NaN: at random)."""

    rows: np.ndarray
    X: np.ndarray
    values: np.ndarray


class PoolLoop:
    """Pool-based active learning, step by step (`ask`, `tell`) or all at once (`run`).

    Parameters
    ----------
    estimator : estimator
        One of this library (anything with `predict_distribution`), a regressor with `predict(X, return_std=True)` or a
        classifier with `predict_proba`; a pipeline or a search of these. It is cloned and stays as it is.
    X : array-like of shape (n_rows, n_features)
        The pool: inputs whose targets may be asked for.
    acquisition : str or callable, default="variance"
        "variance" (epistemic), "entropy", "mutual_information" (BALD), "joint_information" (rows that tell most
        together), "random", or a function from a `Predictive` to a number a row; see `choose`.
    num_queries : int, default=1
        Rows of a question.
    num_start : int, default=5
        Rows that are answered before the first model, asked for at random; those of `labelled` count.
    labelled : tuple (X, y), default=None
        Rows outside the pool whose targets are known from the start.
    test : tuple (X, y), default=None
        Rows on which every fit is scored, for `history`.
    warm_start : bool, default=True
        Whether estimators of this library that can go on from the last fit do so.
    warm_iter : int, default=None
        Steps of a fit that goes on; None: 0.3 of the estimator's `max_iter`, what the end of its recipe takes.
    random_state : int, default=None
        The seed of everything random, also of the estimator where its own is not a whole number. None: a new one,
        which the file keeps.
    path : str or path, default=None
        The file to which every call saves the loop. It must not exist yet: `PoolLoop.load` goes on from one that does.

    Attributes
    ----------
    path : Path or None
        May be set to save elsewhere from the next call on.
    acquisition : str or callable
        May be set to choose otherwise from the next question on.

    Examples
    --------
    >>> import numpy as np
    >>> from metaprior.active import PoolLoop
    >>> from metaprior.baselines import ExactGPRegressor
    >>> pool = np.linspace(-3, 3, 200)[:, None]
    >>> loop = PoolLoop(ExactGPRegressor(), pool, random_state=0)
    >>> for _ in range(3):
    ...     question = loop.ask()
    ...     loop.tell(np.sin(question.X[:, 0]))
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        *,
        acquisition: str | Acquisition = "variance",
        num_queries: int = 1,
        num_start: int = 5,
        labelled: tuple[Any, Any] | None = None,
        test: tuple[Any, Any] | None = None,
        warm_start: bool = True,
        warm_iter: int | None = None,
        random_state: int | None = None,
        path: str | os.PathLike | None = None,
    ) -> None:
        self.X = check_array(X, dtype=np.float64, input_name="X")
        self.acquisition, self.num_queries, self.num_start = acquisition, num_queries, num_start
        self.warm_start, self.warm_iter = warm_start, warm_iter
        self.random_state = int(np.random.SeedSequence().generate_state(1)[0]) if random_state is None else random_state
        self._check_numbers()
        self._learner = Learner(estimator, int(self.random_state), warm_start=warm_start, warm_iter=warm_iter)
        check_acquisition(acquisition, self._learner.has_draws)
        self.labelled, self.test = (
            checked_pair(name, pair, self.X.shape[1], classes=self._learner.classifies)
            for name, pair in (("labelled", labelled), ("test", test))
        )
        self._ledger = Ledger()
        self.path = None if path is None else Path(path)
        refuse_to_replace(path)
        self._save()

    # --- questions and answers ----------------------------------------------------

    def ask(self) -> Question:
        """Return the rows to have answered next; until they are, the same ones every time.

        Fits the model to all answers so far. Before the first model the rows are random ones.
        """
        ledger = self._ledger
        if not ledger.open_rows:
            free = ledger.free(len(self.X))
            if not len(free):
                raise ValueError(f"ask: all {len(self.X)} rows of the pool are answered or skipped; none is left.")
            chosen = self._chosen(free)
            ledger.asked(free[chosen.rows], chosen.values)
            self._save()
        rows = np.array(ledger.open_rows)
        return Question(rows, self.X[rows], np.array(ledger.open_values))

    def tell(self, y: Any, rows: Any = None) -> None:
        """Take answers.

        Parameters
        ----------
        y : array-like of shape (n,) or (n, n_targets), or a number
            Targets, or class labels.
        rows : array-like of int, default=None
            The rows of the pool that they answer, of the open question or others; None: the open question, in its
            order. What is left of the question stays open.
        """
        targets = checked_targets("tell: y", y, classes=self._learner.classifies)
        told = self._rows_meant("tell", rows)
        if len(targets) != len(told):
            raise ValueError(f"tell: expected {len(told)} answers, one for each row of {told}; got {len(targets)}.")
        before = self._known()[1]
        if before is not None and before.shape[1:] != targets.shape[1:]:
            raise ValueError(f"tell: expected answers of shape {before.shape[1:]} as before; got {targets.shape[1:]}.")
        self._ledger.answered(told, targets)
        self._save()

    def skip(self, rows: Any = None) -> None:
        """Never ask for rows that cannot be answered; None: those of the open question."""
        self._ledger.passed_over(self._rows_meant("skip", rows))
        self._save()

    def run(self, oracle: Any, num_answers: int, *, verbose: bool = False) -> "pd.DataFrame":
        """Ask and tell until so many rows of the pool are answered, or none is left; return the history.

        Parameters
        ----------
        oracle : array-like or callable
            The targets of all rows of the pool, or a function from inputs to targets.
        num_answers : int
            Rows of the pool to have answered in all; a last question of several rows is answered whole.
        verbose : bool, default=False
            Show a progress bar on stderr.
        """
        needed_pandas("history")
        answer = checked_oracle(oracle, len(self.X))
        with _progress(verbose, num_answers) as advance:
            while len(self._ledger.rows) < num_answers and len(self._ledger.free(len(self.X))):
                question = self.ask()
                self.tell(answer(question.rows, question.X))
                advance(len(self._ledger.rows))
        if not self._num_missing():
            _ = self.model
        return self.history

    # --- what came of it ----------------------------------------------------------

    @property
    def rows(self) -> np.ndarray:
        """The rows of the pool that are answered, in the order of the answers."""
        return np.array(self._ledger.rows, int)

    @property
    def model(self) -> Any:
        """The estimator fitted to all answers so far."""
        missing = self._num_missing()
        if missing:
            raise ValueError(f"model: at least {missing} more answer(s) are needed for a first model; ask and tell.")
        if self._refit():
            self._save()
        return self._learner.model

    @property
    def history(self) -> "pd.DataFrame":
        """A line a query: its number, row and acquisition value, and the first model that saw its answer.

        Of the model: the `num_rows` it was fitted to; with `test` its `rmse` (or `accuracy`) and `nll` there (infinite
        where the test has a class that was not yet answered); `seconds` of the fit; whether the fit was `fresh`. They
        are missing where there is no such model yet. Query 0 is the model before the first query, if there was one.
        """
        names = () if self.test is None else ("accuracy" if self._learner.classifies else "rmse", "nll")
        return self._ledger.frame(0 if self.labelled is None else len(self.labelled[0]), names)

    def _chosen(self, free: np.ndarray) -> Choice:
        rng = np.random.default_rng([int(self.random_state), self._ledger.num_asked])
        missing = self._num_missing()
        if missing:
            return random_choice(len(free), missing, rng)
        check_acquisition(self.acquisition, self._learner.has_draws)
        self._refit()
        if self.acquisition == "random":
            return random_choice(len(free), self.num_queries, rng)
        return choose(self.acquisition, self._learner.predictive(self.X[free]), self.num_queries, rng)

    def _refit(self) -> bool:
        """Fit to all answers unless that is done; return whether it was to be done."""
        X, y = self._known()
        assert y is not None
        if self._learner.refitted.num_rows == len(X):
            return False
        record = self._learner.fit(X, y)
        self._ledger.fitted(record if self.test is None else record | self._learner.scores(*self.test))
        return True

    def _known(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Return all inputs and targets so far, those of `labelled` first."""
        parts = [] if self.labelled is None else [self.labelled]
        if self._ledger.targets is not None:
            parts.append((self.X[self._ledger.rows], self._ledger.targets))
        if not parts:
            return self.X[:0], None
        return np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts])

    def _rows_meant(self, call: str, rows: Any) -> list[int]:
        """Return the rows that a call speaks of: those it names, or those of the open question."""
        return checked_rows(call, self._ledger.open_rows if rows is None else rows, self._ledger.free(len(self.X)))

    def _num_missing(self) -> int:
        """Return how many more answers a first model needs: `num_start` of them, of two classes at least."""
        y = self._known()[1]
        if y is None or len(y) < self.num_start:
            return self.num_start - (0 if y is None else len(y))
        return self.num_queries if self._learner.classifies and len(np.unique(y)) < 2 else 0

    # --- files --------------------------------------------------------------------

    def _save(self) -> None:
        if self.path is None:
            return
        names = ("X", "num_queries", "num_start", "labelled", "test", "warm_start", "warm_iter", "random_state")
        content = {
            "settings": {name: getattr(self, name) for name in names},
            "acquisition": self.acquisition if isinstance(self.acquisition, str) else None,
            "model": self._learner.refitted.plain(),
            "ledger": vars(self._ledger),
        }
        write_loop(self.path, KIND, content)

    @classmethod
    def load(
        cls, path: str | os.PathLike, *, estimator: Any = None, acquisition: str | Acquisition | None = None
    ) -> Self:
        """Return the loop of a file; it goes on where the saved one was, and saves to that file.

        Parameters
        ----------
        path : str or path
            A file that a loop has written. It may come from a stranger: reading runs no code of the file's.
        estimator : estimator, default=None
            The one that the loop had, where it is not of this library: such a one is not in the file.
        acquisition : str or callable, default=None
            What to choose by from the next question on; needed where it was a function.
        """
        content = read_loop(path, KIND)
        acquisition = content["acquisition"] if acquisition is None else acquisition
        if acquisition is None:
            raise ValueError("PoolLoop.load: the loop chose by a function; give it again, as acquisition=...")
        refitted = RefittedModel.restored(content["model"], estimator)
        loop = cls(refitted.template, acquisition=acquisition, **content["settings"])
        loop._learner.refitted, loop._ledger = refitted, Ledger(**content["ledger"])
        loop.path = Path(path)
        return loop

    # --- checks -------------------------------------------------------------------

    def _check_numbers(self) -> None:
        for name, lowest in (("num_queries", 1), ("num_start", 1), ("random_state", 0)):
            value: Any = getattr(self, name)
            expect(name, value, f"a whole number of at least {lowest}", is_whole(value) and value >= lowest)
        steps: Any = self.warm_iter
        expect(
            "warm_iter", steps, "a whole number of at least 1, or None", steps is None or is_whole(steps) and steps > 0
        )


@contextlib.contextmanager
def _progress(verbose: bool, total: int) -> Iterator[Callable[[int], None]]:
    """Yield a function that is told how many rows are answered; it draws a bar, or nothing when silent."""
    if not verbose:
        yield lambda done: None
        return
    with new_bar() as bar:
        task = bar.add_task("answers", total=total)
        yield lambda done: bar.update(task, completed=min(done, total))
