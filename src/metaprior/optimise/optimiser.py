"""The loop: ask for questions, tell their answers; it is kept in a file after every call and goes on from there."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from metaprior import kernels
from metaprior.decisions.records import history_frame, read_loop, refuse_to_replace, write_loop
from metaprior.decisions.warm_start import RefittedModel
from metaprior.estimators import MetaGPRegressor
from metaprior.estimators.checks import expect, is_whole
from metaprior.estimators.progress import new_bar
from metaprior.kernels import Kernel
from metaprior.optimise.acquisition import ACQUISITIONS, Situation
from metaprior.optimise.box import Box
from metaprior.optimise.targets import surrogate_targets

if TYPE_CHECKING:
    import pandas as pd

#: The usual surrogate: noise in standard deviations of what it sees, steps of its first fit and of those that go on.
SURROGATE_NOISE, FIRST_ITER, WARM_ITER = 0.02, 1000, 300


def default_surrogate(
    input_kernel: Kernel | str | None = None, *, noise: float | None = SURROGATE_NOISE, max_iter: int = FIRST_ITER
) -> MetaGPRegressor:
    """Return the usual surrogate: MetaGP-local with a small fixed noise.

    Parameters
    ----------
    input_kernel : Kernel or str, default=None
        What is known of the function: how it depends on x, in the units of x. None: RBF.
    noise : float or None, default=0.02
        Standard deviation of the answers' noise, in standard deviations of all answers (after the warp); None: learned.
    max_iter : int, default=1000
        Steps of a fresh fit.
    """
    kernel = kernels.RBF() if input_kernel is None else input_kernel
    return MetaGPRegressor(input_kernel=kernel, noise=noise, max_iter=max_iter)


class Optimiser:
    """Minimise a function on a box, by asking for its value at a few points.

    After `num_initial` points spread over the box every question is chosen by the posterior of a surrogate. Everything
    is a function of the settings, the seed and the answers.

    Parameters
    ----------
    bounds : array-like of shape (num_dimensions, 2)
        The lowest and the highest value of every variable.
    surrogate : estimator, default=None
        Any regressor of this library, or a scikit-learn one with `sample_y` or, for "ei", `predict(return_std=True)`.
        It sees x as it is and answers with mean 0 and standard deviation 1. None: `default_surrogate()`.
    acquisition : {"thompson", "ei", "random"}, default="thompson"
        How a question is chosen: the lowest point of a drawn function, the largest expected improvement, or at random.
    num_initial : int, default=None
        Questions before the surrogate is asked; None: 2 * num_dimensions + 2. Points told unasked count.
    warp : bool, default=True
        Whether the surrogate sees log(1 + (y - best) / s), s the lower quartile of y - best, instead of y.
    warm_iter : int or None, default=300
        Steps of a fit that goes on from the last; None: 0.3 of its `max_iter`.
    random_state : int, default=0
    path : str or path, default=None
        A file that holds the state after every `ask` and `tell`; it must not exist. `Optimiser.load` reads it.

    Attributes
    ----------
    X, y : ndarray of shape (num_told, num_dimensions), (num_told,)
        Questions that were answered, and their answers.
    waiting : ndarray of shape (num_waiting, num_dimensions)
        Questions without an answer, oldest first.

    Examples
    --------
    >>> from metaprior.optimise import Optimiser
    >>> optimiser = Optimiser([(-1, 2)], random_state=0)
    >>> for _ in range(6):
    ...     question = optimiser.ask()
    ...     optimiser.tell(question, (question[0, 0] - 0.3) ** 2)
    >>> optimiser.best_x.shape
    (1,)
    """

    def __init__(
        self,
        bounds: Any,
        *,
        surrogate: Any = None,
        acquisition: str = "thompson",
        num_initial: int | None = None,
        warp: bool = True,
        warm_iter: int | None = WARM_ITER,
        random_state: int = 0,
        path: str | os.PathLike | None = None,
    ) -> None:
        self.box = Box(bounds)
        expect("acquisition", acquisition, f"one of {tuple(ACQUISITIONS)}", acquisition in ACQUISITIONS)
        expect("random_state", random_state, "a whole number", is_whole(random_state) and random_state >= 0)
        count = 2 * self.box.num_dimensions + 2 if num_initial is None else num_initial
        expect("num_initial", num_initial, "a whole number of at least 2", is_whole(count) and count >= 2)
        refuse_to_replace(path)
        self.acquisition, self.num_initial, self.warp = acquisition, int(count), bool(warp)
        self.random_state, self.path = int(random_state), path
        self.model = RefittedModel(default_surrogate() if surrogate is None else surrogate, warm_iter)
        self.X, self.waiting = (np.empty((0, self.box.num_dimensions)) for _ in range(2))
        self.y = np.empty(0)
        self.num_asked = self.num_designed = 0
        self._keep()

    # --- the two calls -------------------------------------------------------------

    def ask(self, count: int = 1) -> np.ndarray:
        """Return `count` questions that wait for an answer: those that waited already, then new ones.

        Asking again without telling gives the same questions: a loop that was stopped goes on with the next one. With
        n workers, ask(n) after every answer keeps them all busy.

        Returns
        -------
        ndarray of shape (count, num_dimensions)
        """
        expect("count", count, "a whole number of at least 1", is_whole(count) and count >= 1)
        missing = int(count) - len(self.waiting)
        if missing > 0:
            of_design = self._of_design(missing)
            new = [self.box.spread(of_design, self.random_state, self.num_designed)]
            new += [self._chosen(missing - of_design)] if missing > of_design else []
            self.waiting = np.vstack([self.waiting, *new])
            self.num_asked, self.num_designed = self.num_asked + missing, self.num_designed + of_design
            self._keep()
        return self.waiting[:count].copy()

    def tell(self, X: Any, y: Any) -> None:
        """Take answers to questions that wait, or to any others of the box.

        Parameters
        ----------
        X : array-like of shape (num_dimensions,) or (n, num_dimensions)
        y : float or array-like of shape (n,)
            Values of the function: the lowest is looked for.
        """
        rows, values = self.box.checked(X, "tell"), np.atleast_1d(np.asarray(y, np.float64))
        if values.shape != (len(rows),):
            raise ValueError(f"tell: expected {len(rows)} answers, one a question; got shape {np.shape(y)}.")
        if not np.all(np.isfinite(values)):
            raise ValueError(
                f"tell: expected finite answers; got {values}. For an evaluation that failed, tell a poor value, "
                "such as the largest so far."
            )
        near = np.max(np.abs(self.box.to_unit(self.waiting)[:, None] - self.box.to_unit(rows)), axis=2) < 1e-9
        self.waiting = self.waiting[~near.any(axis=1)]
        self.X, self.y = np.vstack([self.X, rows]), np.append(self.y, values)
        self._keep()

    def _of_design(self, count: int) -> int:
        """Return how many of the next questions are of the first design: all, before there is something to fit."""
        if len(self.y) < 2:
            return count
        return min(count, max(self.num_initial - len(self.y) - len(self.waiting), 0))

    def _chosen(self, count: int) -> np.ndarray:
        targets = surrogate_targets(self.y, warp=self.warp)
        model = None
        if self.acquisition != "random":
            model = self.model.fit(self.X, targets, self._seed(0, len(self.y)))
        seed = np.random.SeedSequence([self.random_state, 1, self.num_asked])
        situation = Situation(self.box, model, self.X, targets, self.waiting, seed)
        return ACQUISITIONS[self.acquisition](situation, count)

    def _seed(self, *numbers: int) -> int:
        return int(np.random.SeedSequence([self.random_state, *numbers]).generate_state(1)[0] >> 1)

    # --- what was found --------------------------------------------------------------

    @property
    def best_x(self) -> np.ndarray:
        """The point of the lowest answer so far."""
        self._expect_answers()
        return self.X[np.argmin(self.y)]

    @property
    def best_y(self) -> float:
        """The lowest answer so far."""
        self._expect_answers()
        return float(np.min(self.y))

    def _expect_answers(self) -> None:
        if not len(self.y):
            raise ValueError("best: nothing was told yet; ask for questions and tell their answers.")

    def history(self) -> "pd.DataFrame":
        """Return a frame with a row an answer, in the order they were told: x0, x1, ..., y and the best so far."""
        columns = {f"x{d}": self.X[:, d] for d in range(self.box.num_dimensions)}
        best = np.minimum.accumulate(self.y) if len(self.y) else self.y
        return history_frame({**columns, "y": self.y, "best": best})

    # --- files -----------------------------------------------------------------------

    def _settings(self) -> dict[str, Any]:
        return {
            "bounds": self.box.bounds.tolist(),
            **{name: getattr(self, name) for name in ("acquisition", "num_initial", "warp", "random_state")},
        }

    def _keep(self) -> None:
        """Write the state, where there is a file for it."""
        if self.path is None:
            return
        names = "X", "y", "waiting", "num_asked", "num_designed"
        state = {name: getattr(self, name) for name in names}
        write_loop(self.path, "optimise", {**self._settings(), **state, "model": self.model.plain()})

    @classmethod
    def load(cls, path: str | os.PathLike, surrogate: Any = None) -> Self:
        """Return the loop of a file, where it stopped; it goes on keeping itself there.

        Parameters
        ----------
        path : str or path
        surrogate : estimator, default=None
            The surrogate, where it is not one of this library.
        """
        state = read_loop(path, "optimise")
        model = RefittedModel.restored(state.pop("model"), surrogate)
        settings = {name: state.pop(name) for name in ("bounds", "acquisition", "num_initial", "warp", "random_state")}
        made = cls(**settings, surrogate=model.template)
        for name, value in {**state, "model": model, "path": path}.items():
            setattr(made, name, value)
        return made

    # --- all of it -------------------------------------------------------------------

    def run(self, function: Callable[[np.ndarray], float], num_evaluations: int, *, batch: int = 1) -> Self:
        """Ask and tell until `num_evaluations` answers are there, counting those that are there already.

        Parameters
        ----------
        function : callable
            From a point, [num_dimensions], to a number.
        num_evaluations : int
        batch : int, default=1
            Questions that are chosen together: fewer fits, less informed questions.
        """
        while len(self.y) < num_evaluations:
            count = min(batch, num_evaluations - len(self.y))
            questions = self.ask(count)
            self.tell(questions, [float(function(x)) for x in questions])
        return self


def minimise(
    function: Callable[[np.ndarray], float],
    bounds: Any,
    num_evaluations: int = 40,
    *,
    batch: int = 1,
    surrogate: Any = None,
    acquisition: str = "thompson",
    num_initial: int | None = None,
    warp: bool = True,
    random_state: int = 0,
    path: str | os.PathLike | None = None,
    verbose: bool = False,
) -> Optimiser:
    """Look for the lowest value of a function on a box.

    Parameters
    ----------
    function : callable
        From a point, an array of shape (num_dimensions,), to a number.
    bounds, surrogate, acquisition, num_initial, warp, random_state :
        As for `Optimiser`.
    num_evaluations : int, default=40
        How often the function is evaluated.
    batch : int, default=1
        Questions that are chosen together.
    path : str or path, default=None
        A file of the state. If it is there, that loop goes on; its settings must be these.
    verbose : bool, default=False
        Show a progress bar on stderr.

    Returns
    -------
    Optimiser
        With `best_x`, `best_y`, `X`, `y` and `history()`.

    Examples
    --------
    >>> from metaprior.optimise import minimise
    >>> found = minimise(lambda x: (x[0] - 0.3) ** 2, [(-1, 2)], num_evaluations=6)
    >>> len(found.y)
    6
    """
    wanted = {"acquisition": acquisition, "num_initial": num_initial, "warp": warp, "random_state": random_state}
    if path is not None and Path(path).exists():
        optimiser = Optimiser.load(path, surrogate)
        _expect_same(optimiser, {**wanted, "bounds": Box(bounds).bounds.tolist()})
    else:
        optimiser = Optimiser(bounds, surrogate=surrogate, path=path, **wanted)  # type: ignore[arg-type]
    with _progress(verbose, num_evaluations) as listen:

        def watched(x: np.ndarray) -> float:
            value = float(function(x))
            listen(value)
            return value

        return optimiser.run(watched, num_evaluations, batch=batch)


def _expect_same(optimiser: Optimiser, wanted: dict[str, Any]) -> None:
    """Raise where a file holds a loop with other settings."""
    for name, kept in optimiser._settings().items():
        if wanted[name] is not None and wanted[name] != kept:
            raise ValueError(
                f"{name}: the loop in {optimiser.path} has {kept!r}, not {wanted[name]!r}; give its settings to go "
                "on with it, or another path."
            )


@contextmanager
def _progress(verbose: bool, total: int) -> Iterator[Callable[[float], None]]:
    """Yield a function that is told every answer; it draws a bar, or nothing when silent."""
    if not verbose:
        yield lambda value: None
        return
    with new_bar() as bar:
        task, lowest = bar.add_task("", total=total), [np.inf]

        def listen(value: float) -> None:
            lowest[0] = min(lowest[0], value)
            bar.update(task, advance=1, description=f"best {lowest[0]:.4g}")

        yield listen
