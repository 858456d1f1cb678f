"""The base of all decision loops: `ask` what to observe next, `tell` what was observed, and ask again.

A loop has settings, a state that grows with every observation, and a model that is fitted to it (`warm_start`). The
state is never changed in place. A call makes a new state, writes it to the loop's file, and only then adopts it. So a
call that raises an error, or whose file cannot be written, leaves the loop as it was, and a process that dies at any
moment leaves the file of its last call.

What a loop asks depends only on its settings, its seed and the observations so far, and pending questions are asked
again. So a loop that is loaded from its file continues as if it had never stopped.
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

#: The observations and pending questions of a loop: a frozen dataclass whose fields can be saved.
State = TypeVar("State")


class Loop(abc.ABC, Generic[State]):
    """The methods that all loops share, and those that a new kind of loop must define.

    The constructor of a subclass checks its own settings, passes the model, the seed and the path to this constructor,
    and ends with `self._commit(...)` of an empty state.

    Parameters
    ----------
    model : WarmStartedModel or None
        The model that guides the choices. None if it is made later, from the first observations.
    random_state : int or None
        The seed of everything random. None draws one, which the attribute `random_state` and the file then hold.
    path : str, path or None
        The file to which the loop is saved after every call. It must not exist yet.
    """

    #: The kind of state that the loop's files contain.
    kind: ClassVar[str]

    def __init__(
        self, model: WarmStartedModel | None, random_state: int | None, path: str | os.PathLike[str] | None
    ) -> None:
        seed: Any = np.random.SeedSequence().generate_state(1)[0] if random_state is None else random_state
        expect("random_state", seed, "a whole number of at least 0, or None", is_whole(seed) and seed >= 0)
        if path is not None and Path(path).exists():
            raise FileExistsError(f"path: {path} exists; load it to continue that loop, or give another name.")
        self.random_state = int(seed)
        self.path = None if path is None else Path(path)
        self._model = model

    # --- what every loop can do -----------------------------------------------------

    @abc.abstractmethod
    def ask(self, *args: Any, **kwargs: Any) -> Any:
        """Return what to observe next. Until it is told, the answer stays the same."""

    @abc.abstractmethod
    def tell(self, y: Any, *args: Any, **kwargs: Any) -> None:
        """Add observations of what is pending, in the same order."""

    @property
    @abc.abstractmethod
    def pending(self) -> Any:
        """What was asked for and has not been told yet."""

    @property
    @abc.abstractmethod
    def n_observed(self) -> int:
        """The number of observations so far."""

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
        """Ask and tell until there are `n_observations` observations, including earlier ones.

        Parameters
        ----------
        source : object
            What gives the answers. Each kind of loop documents what it accepts.
        n_observations : int
            The total number of observations, so that a loop that was stopped continues to the same end.
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

    # --- what a kind of loop defines ------------------------------------------------

    @abc.abstractmethod
    def _settings(self) -> dict[str, Any]:
        """Return what `_from_settings` needs besides the estimator, as values that can be saved."""

    @classmethod
    @abc.abstractmethod
    def _from_settings(cls, settings: dict[str, Any], model: WarmStartedModel | None) -> Self:
        """Return a new loop with the settings and the estimator of a file."""

    @classmethod
    @abc.abstractmethod
    def _state_from(cls, fields: dict[str, Any]) -> State:
        """Return the state whose fields a file contains."""

    @abc.abstractmethod
    def _history_columns(self) -> dict[str, Any]:
        """Return the columns of `history`; the first is "observation"."""

    @abc.abstractmethod
    def _play_round(self, source: Any, n_left: int) -> None:
        """Ask, get the answers from the source, and tell them. About `n_left` observations at most."""

    def _checked_source(self, source: Any) -> Any:
        """Check the source of `run`, and return it in the form that `_play_round` needs."""
        return source

    def _can_ask(self) -> bool:
        """Return whether anything is left to ask for."""
        return True

    def _summary(self) -> str:
        """Return the text that the progress bar shows."""
        return ""

    # --- fits -----------------------------------------------------------------------

    @property
    def model(self) -> Any:
        """The estimator of the last fit."""
        if self._model is None or self._model.fitted is None:
            raise ValueError("model: there is no fit yet; ask and tell until the first question that needs one.")
        return self._model.fitted

    def _seed(self, *numbers: int) -> int:
        """Return a seed derived from the loop's own and some numbers."""
        return int(np.random.SeedSequence([self.random_state, *numbers]).generate_state(1)[0] >> 1)

    def _fit_seed(self, n_rows: int) -> int:
        """Return the seed of the fit to `n_rows` rows."""
        return self._seed(0, n_rows)

    # --- files ----------------------------------------------------------------------

    def _commit(self, state: State) -> None:
        """Write a new state to the file, then adopt it. If it cannot be written, nothing changes."""
        if self.path is not None:
            model = None if self._model is None else self._model.content()
            save_state(self.path, self.kind, {"settings": self._settings(), "state": vars(state), "model": model})
        self._state = state

    @classmethod
    @accepts_old_keywords(LOOP_PARAMETERS)
    def load(cls, path: str | os.PathLike[str], estimator: Any = None) -> Self:
        """Load a loop from its file. It continues where it stopped, and saves to the same file.

        Parameters
        ----------
        path : str or path
            A file that a loop has written. Files from untrusted sources are safe to load: no code in them is run.
        estimator : estimator, default=None
            The loop's estimator, needed if it is from another library, because files do not contain those.
        """
        return cls._continued(cls._content(path), path, estimator)

    @classmethod
    def _content(cls, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Return the content of a file, in the present form."""
        return present_content(cls.kind, load_state(path, cls.kind))

    @classmethod
    def _continued(cls, content: dict[str, Any], path: str | os.PathLike[str], estimator: Any) -> Self:
        """Return the loop that the content of a file describes."""
        model = None if content["model"] is None else WarmStartedModel.restored(content["model"], estimator)
        loop = cls._from_settings(content["settings"], model)
        loop._model, loop._state = model, cls._state_from(content["state"])
        loop.path = Path(path)
        return loop


@contextlib.contextmanager
def _progress(verbose: bool, total: int) -> Iterator[Callable[[int, str], None]]:
    """Yield a function that is called with the progress and a text, and draws a progress bar if `verbose`."""
    if not verbose:
        yield lambda done, text: None
        return
    with new_bar() as bar:
        task = bar.add_task("", total=total)
        yield lambda done, text: bar.update(task, completed=min(done, total), description=text)
