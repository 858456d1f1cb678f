"""The optimiser: ask where to evaluate a function, tell its value, and ask again."""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from metaprior import kernels
from metaprior.decisions.base import Loop, one_at_a_time
from metaprior.decisions.optimise.acquisition import ACQUISITIONS, Situation
from metaprior.decisions.optimise.box import Box
from metaprior.decisions.optimise.evaluations import Evaluations
from metaprior.decisions.optimise.targets import surrogate_targets
from metaprior.decisions.warm_start import WarmStartedModel
from metaprior.estimators import MetaGPRegressor
from metaprior.estimators.checks import expect, is_whole
from metaprior.estimators.renamed import accepts_old_keywords
from metaprior.io.renamed import LOOP_PARAMETERS
from metaprior.kernels import Kernel
from metaprior.user_warnings import warn_user

if TYPE_CHECKING:
    import pandas as pd

#: The default surrogate: its noise in standard deviations of its targets, and the steps of a fresh and of a warm fit.
SURROGATE_NOISE, FIRST_ITER, WARM_ITER = 0.02, 1000, 300
#: The most points that are chosen together. Each is chosen by a search of its own.
MOST_QUERIES = 10_000


def default_surrogate(
    input_kernel: Kernel | str | None = None, *, noise: float | None = SURROGATE_NOISE, max_iter: int = FIRST_ITER
) -> MetaGPRegressor:
    """Return the default surrogate: MetaGP-local with a small fixed noise.

    Parameters
    ----------
    input_kernel : Kernel or str, default=None
        The input kernel, in the units of x. It can express what is known about the function. None means RBF.
    noise : float or None, default=0.02
        Standard deviation of the noise, in standard deviations of all values (after the warp). None learns it.
    max_iter : int, default=1000
        Number of steps of a fresh fit.
    """
    kernel = kernels.RBF() if input_kernel is None else input_kernel
    return MetaGPRegressor(input_kernel=kernel, noise=noise, max_iter=max_iter)


def _expect_queries(n_queries: Any) -> None:
    expect("n_queries", n_queries, "a whole number of at least 1", is_whole(n_queries) and n_queries >= 1)
    expect("n_queries", n_queries, f"at most {MOST_QUERIES} points at once", n_queries <= MOST_QUERIES)


def _accepts_old_order(tell: Callable[..., None]) -> Callable[..., None]:
    """Let `tell` be called as `tell(X, y)`, its order of arguments in earlier versions."""

    @functools.wraps(tell)
    def call(self: "Optimiser", y: Any, *values: Any, X: Any = None) -> None:
        if not values:
            return tell(self, y, X=X)
        warn_user(
            "tell(X, y) is now tell(y, X=X); the old order will be removed in the next release.",
            DeprecationWarning,
        )
        return tell(self, *values, X=y)

    return call


class Optimiser(Loop[Evaluations]):
    """Bayesian optimisation: minimise a function on a box by evaluating it at a few points.

    The first `n_initial` points are spread over the box. After that, the posterior of a surrogate chooses the points.

    Parameters
    ----------
    bounds : array-like of shape (n_dimensions, 2)
        The lowest and the highest value of every variable.
    estimator : estimator, default=None
        The surrogate: any regressor of this library, or a scikit-learn regressor with `sample_y` or, for "ei",
        `predict(return_std=True)`. It sees x as it is, and values with mean 0 and standard deviation 1. None means
        `default_surrogate()`.
    acquisition : {"thompson", "ei", "random"}, default="thompson"
        How a point is chosen: the minimum of a drawn function, the largest expected improvement, or at random.
    n_queries : int, default=1
        Number of points that are chosen together, at most 10,000.
    n_initial : int, default=None
        Number of points before the surrogate is used; None means 2 * n_dimensions + 2. All values that were told count.
    warp : bool, default=True
        Whether the surrogate sees log(1 + (y - best) / s), s the lower quartile of y - best, instead of y.
    warm_iter : int or None, default=300
        Number of steps of a fit that continues from the last one. None means 0.3 of the estimator's `max_iter`.
    random_state : int, default=None
        Seed of the questions and of the fits. An estimator whose own `random_state` is an integer keeps it. None draws
        a seed, which the attribute `random_state` and the file then hold.
    path : str or path, default=None
        File to which the loop is saved after every call. It must not exist yet; `Optimiser.load` resumes from a file.

    Attributes
    ----------
    path : Path or None
        Can be set to save elsewhere from the next call on.
    n_queries : int
        Can be set to ask for another number of points from the next question on.

    Examples
    --------
    >>> from metaprior.decisions import Optimiser
    >>> optimiser = Optimiser([(-1, 2)], random_state=0)
    >>> for _ in range(6):
    ...     question = optimiser.ask()
    ...     optimiser.tell((question[:, 0] - 0.3) ** 2)
    >>> optimiser.best_x.shape
    (1,)
    """

    kind = "optimise"
    setting_names = ("bounds", "acquisition", "n_queries", "n_initial", "warp", "random_state")
    _model: WarmStartedModel

    @accepts_old_keywords(LOOP_PARAMETERS)
    def __init__(
        self,
        bounds: Any,
        *,
        estimator: Any = None,
        acquisition: str = "thompson",
        n_queries: int = 1,
        n_initial: int | None = None,
        warp: bool = True,
        warm_iter: int | None = WARM_ITER,
        random_state: int | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        self.box = Box(bounds)
        expect("acquisition", acquisition, f"one of {tuple(ACQUISITIONS)}", acquisition in ACQUISITIONS)
        _expect_queries(n_queries)
        count = 2 * self.box.n_dimensions + 2 if n_initial is None else n_initial
        expect("n_initial", n_initial, "a whole number of at least 2", is_whole(count) and count >= 2)
        model = WarmStartedModel(default_surrogate() if estimator is None else estimator, warm_iter)
        super().__init__(model, random_state, path)
        self.acquisition, self.warp = acquisition, bool(warp)
        self.n_queries, self.n_initial = int(n_queries), int(count)
        self._commit(Evaluations.none(self.box.n_dimensions))

    # --- questions and answers -------------------------------------------------------

    @one_at_a_time
    def ask(self, n_queries: int | None = None) -> np.ndarray:
        """Return points to evaluate: pending ones first, oldest first, then new ones.

        Asking again without telling gives the same points, so a loop that was stopped continues with them. With n
        workers, ask(n) after every answer keeps them all busy.

        Parameters
        ----------
        n_queries : int, default=None
            How many points to return. None means the loop's own `n_queries`.

        Returns
        -------
        ndarray of shape (n_queries, n_dimensions)
        """
        count = self.n_queries if n_queries is None else n_queries
        _expect_queries(count)
        missing = int(count) - len(self.pending)
        if missing > 0:
            of_design = self._of_design(missing)
            new, model = self.box.spread(of_design, self.random_state, self._state.n_designed), self._model
            if missing > of_design:
                chosen, model = self._chosen(missing - of_design)
                new = np.vstack([new, chosen])
            self._commit(self._state.with_questions(new, of_design), model)
        return self.pending[:count].copy()

    @_accepts_old_order
    @one_at_a_time
    def tell(self, y: Any, *, X: Any = None) -> None:
        """Add values of the function, which is minimised.

        Parameters
        ----------
        y : float or array-like of shape (n,)
        X : array-like of shape (n_dimensions,) or (n, n_dimensions), default=None
            The points of the values: pending ones or any others in the box. None means all pending points, in order.
        """
        rows = self.pending if X is None else self.box.checked(X, "tell")
        values = np.atleast_1d(np.asarray(y, np.float64))
        if X is None and not len(rows):
            raise ValueError("tell: no question is pending; ask first, or give X.")
        if values.shape != (len(rows),):
            raise ValueError(
                f"tell: expected {len(rows)} answers, one for each {'pending ' if X is None else ''}point; got shape "
                f"{np.shape(y)}{'; give X to answer some of them' if X is None else ''}."
            )
        if not np.all(np.isfinite(values)):
            raise ValueError(
                f"tell: expected finite answers; got {values}. For an evaluation that failed, tell a poor value, "
                "such as the largest so far."
            )
        near = np.max(np.abs(self.box.to_unit(self.pending)[:, None] - self.box.to_unit(rows)), axis=2) < 1e-9
        self._commit(self._state.with_values(rows, values, near.any(axis=1)))

    def _play_round(self, source: Callable[[np.ndarray], float], n_left: int) -> None:
        questions = self.ask(min(self.n_queries, n_left))
        self.tell([float(source(x)) for x in questions], X=questions)

    def _summary(self) -> str:
        return f"best {self.best_y:.4g}"

    def _of_design(self, count: int) -> int:
        """Return how many of the next points are in the initial design. Until two values are told, all are."""
        if len(self.y) < 2:
            return count
        return min(count, max(self.n_initial - len(self.y) - len(self.pending), 0))

    def _chosen(self, count: int) -> tuple[np.ndarray, WarmStartedModel]:
        """Return new points and the model that chose them."""
        targets, model = surrogate_targets(self.y, warp=self.warp), self._model
        if self.acquisition != "random":
            model = model.refitted(self.X, targets, self._fit_seed(len(targets)))
        seed = np.random.SeedSequence([self.random_state, 1, self._state.n_asked])
        situation = Situation(self.box, model.fitted, self.X, targets, self.pending, seed)
        return ACQUISITIONS[self.acquisition](situation, count), model

    # --- results ---------------------------------------------------------------------

    @property
    def bounds(self) -> list[list[float]]:
        """The lowest and the highest value of every variable."""
        return self.box.bounds.tolist()

    @property
    def X(self) -> np.ndarray:
        """The points whose values were told, in the order of telling."""
        return self._state.X

    @property
    def y(self) -> np.ndarray:
        """The values that were told."""
        return self._state.y

    @property
    def pending(self) -> np.ndarray:
        """The points without a value, oldest first."""
        return self._state.pending

    @property
    def n_observed(self) -> int:
        """The number of values that were told."""
        return len(self.y)

    @property
    def best_x(self) -> np.ndarray:
        """The point with the lowest value so far."""
        self._expect_values()
        told = self._state
        return told.X[np.argmin(told.y)]

    @property
    def best_y(self) -> float:
        """The lowest value so far."""
        self._expect_values()
        return float(np.min(self.y))

    def _expect_values(self) -> None:
        if not len(self.y):
            raise ValueError("best: there are no values yet; ask for points and tell their values.")

    @property
    def history(self) -> "pd.DataFrame":
        """One row per value, in the order in which they were told; needs pandas.

        The columns are the number of the `observation`, the point `x0`, `x1`, ..., its value `y` and the `best` value
        so far.
        """
        return super().history

    def _history_columns(self) -> dict[str, Any]:
        told = self._state
        X, y = told.X, told.y
        best = np.minimum.accumulate(y) if len(y) else y
        point = {f"x{d}": X[:, d] for d in range(self.box.n_dimensions)}
        return {"observation": np.arange(1, len(y) + 1), **point, "y": y, "best": best}

    # --- files -----------------------------------------------------------------------

    @classmethod
    def _from_settings(cls, settings: dict[str, Any], model: WarmStartedModel | None) -> Self:
        if model is None:
            raise ValueError("model: expected a model; got None.")
        return cls(**settings, estimator=model.template, warm_iter=model.warm_iter)

    def _checked_state(self, fields: Any) -> Evaluations:
        return Evaluations.checked(fields, self.box)

    def _data_shape(self) -> tuple[int, int]:
        return self.n_observed, self.box.n_dimensions


@accepts_old_keywords(LOOP_PARAMETERS)
def minimise(
    function: Callable[[np.ndarray], float],
    bounds: Any,
    n_observations: int = 40,
    *,
    estimator: Any = None,
    acquisition: str = "thompson",
    n_queries: int = 1,
    n_initial: int | None = None,
    warp: bool = True,
    random_state: int | None = None,
    path: str | os.PathLike[str] | None = None,
    verbose: bool = False,
) -> Optimiser:
    """Search for the minimum of a function on a box.

    Parameters
    ----------
    function : callable
        A function from a point, an array of shape (n_dimensions,), to a number.
    n_observations : int, default=40
        How often the function is evaluated in total.
    bounds, estimator, acquisition, n_queries, n_initial, warp, random_state :
        As for `Optimiser`.
    path : str or path, default=None
        A file to save the loop to. If it exists, that loop is continued, and its settings must be the same.
    verbose : bool, default=False
        Show a progress bar on stderr.

    Returns
    -------
    Optimiser
        With `best_x`, `best_y`, `X`, `y` and `history`.

    Examples
    --------
    >>> from metaprior.decisions import minimise
    >>> found = minimise(lambda x: (x[0] - 0.3) ** 2, [(-1, 2)], n_observations=6, random_state=0)
    >>> len(found.y)
    6
    """
    if path is not None and Path(path).exists():
        optimiser = Optimiser.load(path, estimator)
        wanted = {"acquisition": acquisition, "n_initial": n_initial, "warp": warp, "random_state": random_state}
        _expect_same(optimiser, {"bounds": Box(bounds).bounds.tolist(), **wanted})
        optimiser.n_queries = n_queries
    else:
        optimiser = Optimiser(
            bounds,
            estimator=estimator,
            acquisition=acquisition,
            n_queries=n_queries,
            n_initial=n_initial,
            warp=warp,
            random_state=random_state,
            path=path,
        )
    return optimiser.run(function, n_observations, verbose=verbose)


def _expect_same(optimiser: Optimiser, wanted: dict[str, Any]) -> None:
    """Raise an error if a loaded loop has other settings."""
    saved = optimiser._settings()
    for name, value in wanted.items():
        if value is not None and value != saved[name]:
            raise ValueError(
                f"{name}: the loop in {optimiser.path} has {saved[name]!r}, not {value!r}; give its settings to "
                "continue it, or another path."
            )
