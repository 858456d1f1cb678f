"""The loop that all decisions share: ask what to observe next, be told what came, ask again.

A loop has settings, a state that grows by what it is told, and a model that is fitted to it (`warm_start`). The state
is never changed in place: a call makes a new one, which is written to the loop's file and only then taken. So a call
that is refused, or whose file cannot be written, leaves the loop as it was, and a process that dies at any moment
leaves the file of its last call.

What a loop asks depends on its settings, its seed and what it was told alone, and what is pending is asked again. So a
loop that is loaded from its file goes on as if it had never stopped.
"""

import abc
import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from metaprior.decisions.old_files import present_content
from metaprior.decisions.warm_start import WarmStartedModel
from metaprior.estimators.checks import expect, is_whole
from metaprior.estimators.progress import new_bar
from metaprior.estimators.renamed import accepts_old_keywords
from metaprior.io.renamed import LOOP_PARAMETERS
from metaprior.io.saving import load_state, save_state

if TYPE_CHECKING:
    import pandas as pd

#: What a loop was told and what it waits for: a frozen dataclass whose fields can be saved.
State = TypeVar("State")


class Loop(abc.ABC, Generic[State]):
    """What every loop can do, and what a new kind of loop has to say.

    A subclass checks its own settings, hands the model, the seed and the path to this constructor, and ends its own
    with `self._commit(...)` of an empty state.

    Parameters
    ----------
    model : WarmStartedModel or None
        The model to choose by; None where it is made later, from the first observations.
    random_state : int or None
        The seed of everything random. None: a new one, which `random_state` and the file then hold.
    path : str, path or None
        The file that holds the loop after every call; it must not exist yet.
    """

    #: The kind of the loop's files.
    kind: ClassVar[str]

    def __init__(
        self, model: WarmStartedModel | None, random_state: int | None, path: str | os.PathLike[str] | None
    ) -> None:
        seed: Any = np.random.SeedSequence().generate_state(1)[0] if random_state is None else random_state
        expect("random_state", seed, "a whole number of at least 0, or None", is_whole(seed) and seed >= 0)
        if path is not None and Path(path).exists():
            raise FileExistsError(f"path: {path} exists; load it to go on with that loop, or give another name.")
        self.random_state = int(seed)
        self.path = None if path is None else Path(path)
        self._model = model

    # --- what every loop is asked ---------------------------------------------------

    @abc.abstractmethod
    def ask(self, *args: Any, **kwargs: Any) -> Any:
        """Return what to observe next; until it is told, the same every time."""

    @abc.abstractmethod
    def tell(self, y: Any, *args: Any, **kwargs: Any) -> None:
        """Take observations of what is pending, in its order."""

    @property
    @abc.abstractmethod
    def pending(self) -> Any:
        """What was asked and is not told yet."""

    @property
    @abc.abstractmethod
    def n_observed(self) -> int:
        """How many observations were told."""

    @property
    def history(self) -> "pd.DataFrame":
        """One row per observation, in the order in which they were told; needs pandas."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError('history: the table needs pandas; pip install "metaprior[compare]".') from error
        return pandas.DataFrame(self._history_columns())

    @accepts_old_keywords(LOOP_PARAMETERS)
    def run(self, source: Any, n_observations: int, *, verbose: bool = False) -> Self:
        """Ask and tell until there are so many observations, counting those that are there already.

        Parameters
        ----------
        source : object
            What answers; each loop says what it takes.
        n_observations : int
            Observations in all, so that a loop that was stopped goes on to the same end.
        verbose : bool, default=False
            Show a progress bar on stderr.

        Returns
        -------
        self
        """
        whole = is_whole(n_observations) and n_observations >= 0
        expect("n_observations", n_observations, "a whole number of at least 0", whole)
        source = self._checked_source(source)
        with _progress(verbose, int(n_observations)) as show:
            while self.n_observed < n_observations and self._can_ask():
                self._play_round(source, n_observations - self.n_observed)
                show(self.n_observed, self._summary())
        return self

    # --- what a kind of loop says ---------------------------------------------------

    @abc.abstractmethod
    def _settings(self) -> dict[str, Any]:
        """Return what `_from_settings` needs besides the estimator, in parts that can be saved."""

    @classmethod
    @abc.abstractmethod
    def _from_settings(cls, settings: dict[str, Any], model: WarmStartedModel | None) -> Self:
        """Return a new loop with the settings of a file and the estimator of the file's model."""

    @classmethod
    @abc.abstractmethod
    def _state_from(cls, fields: dict[str, Any]) -> State:
        """Return the state of a file."""

    @abc.abstractmethod
    def _history_columns(self) -> dict[str, Any]:
        """Return the columns of `history`; the first is "observation"."""

    @abc.abstractmethod
    def _play_round(self, source: Any, n_left: int) -> None:
        """Ask, have the source answer, and tell; about `n_left` observations at most."""

    def _checked_source(self, source: Any) -> Any:
        """Return what `run` was given, in the form that `_play_round` takes."""
        return source

    def _can_ask(self) -> bool:
        """Return whether anything is left to ask for."""
        return True

    def _summary(self) -> str:
        """Return what the progress bar says beside the number of observations."""
        return ""

    # --- fits -----------------------------------------------------------------------

    @property
    def model(self) -> Any:
        """The estimator of the last fit."""
        if self._model is None or self._model.fitted is None:
            raise ValueError("model: there was no fit yet; ask and tell until the first question that needs one.")
        return self._model.fitted

    def _seed(self, *numbers: int) -> int:
        """Return a seed that follows from the loop's own and some numbers."""
        return int(np.random.SeedSequence([self.random_state, *numbers]).generate_state(1)[0] >> 1)

    def _fit_seed(self, n_rows: int) -> int:
        """Return the seed of the fit to so many rows."""
        return self._seed(0, n_rows)

    # --- files ----------------------------------------------------------------------

    def _commit(self, state: State) -> None:
        """Write a new state to the file and take it; where it cannot be written, nothing changes."""
        if self.path is not None:
            model = None if self._model is None else self._model.content()
            save_state(self.path, self.kind, {"settings": self._settings(), "state": vars(state), "model": model})
        self._state = state

    @classmethod
    @accepts_old_keywords(LOOP_PARAMETERS)
    def load(cls, path: str | os.PathLike[str], estimator: Any = None) -> Self:
        """Return the loop of a file; it goes on where the saved one was, and saves to that file.

        Parameters
        ----------
        path : str or path
            A file that a loop has written. It may come from a stranger: reading runs no code of the file's.
        estimator : estimator, default=None
            The loop's estimator, where it is not of this library: such a one is not in the file.
        """
        return cls._continued(cls._content(path), path, estimator)

    @classmethod
    def _content(cls, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Return what a file holds, in the present form."""
        return present_content(cls.kind, load_state(path, cls.kind))

    @classmethod
    def _continued(cls, content: dict[str, Any], path: str | os.PathLike[str], estimator: Any) -> Self:
        """Return the loop of a file's content."""
        model = None if content["model"] is None else WarmStartedModel.restored(content["model"], estimator)
        loop = cls._from_settings(content["settings"], model)
        loop._model, loop._state = model, cls._state_from(content["state"])
        loop.path = Path(path)
        return loop


@contextlib.contextmanager
def _progress(verbose: bool, total: int) -> Iterator[Callable[[int, str], None]]:
    """Yield a function of how many are done and a text; it draws a bar, or nothing when silent."""
    if not verbose:
        yield lambda done, text: None
        return
    with new_bar() as bar:
        task = bar.add_task("", total=total)
        yield lambda done, text: bar.update(task, completed=min(done, total), description=text)
