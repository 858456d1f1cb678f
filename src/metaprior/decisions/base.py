"""The base of all decision loops: `ask` what to observe next, `tell` what was observed, and ask again.

A loop has settings, a state that grows with every observation, and a model that is fitted to it (`warm_start`). State
and model are never changed in place. A call makes new ones, writes them to the loop's file, and only then adopts them.
So a call that raises an error, or whose file cannot be written, leaves the loop as it was, and a process that dies at
any moment leaves the file of its last call.

Calls from several threads wait for each other. Loops that share a file, in one process or in several, never overwrite
each other's answers: the file is written under a lock, and only if nobody else has changed it (`files`).

What a loop asks depends only on its settings, its seed and the observations so far, and pending questions are asked
again. So a loop that is loaded from its file continues as if it had never stopped.
"""

import abc
import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, Generic, ParamSpec, Self, TypeVar

import numpy as np

from metaprior.decisions.content import checked_count, checked_fields, expect_content
from metaprior.decisions.files import LoopFiles, continuing
from metaprior.decisions.old_files import present_content
from metaprior.decisions.warm_start import WarmStartedModel
from metaprior.estimators.checks import expect, is_whole
from metaprior.estimators.progress import new_bar
from metaprior.estimators.renamed import accepts_old_keywords
from metaprior.extras import imported
from metaprior.io.renamed import LOOP_PARAMETERS

if TYPE_CHECKING:
    import pandas as pd

#: The observations and pending questions of a loop: a frozen dataclass whose fields can be saved.
State = TypeVar("State")

AnyLoop = TypeVar("AnyLoop", bound="Loop[Any]")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def one_at_a_time(
    method: Callable[Concatenate[AnyLoop, Arguments], Result],
) -> Callable[Concatenate[AnyLoop, Arguments], Result]:
    """Let a method of a loop wait until no other thread changes the loop. Every method that changes it needs this."""

    @functools.wraps(method)
    def call(self: AnyLoop, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with self._turn:
            return method(self, *args, **kwargs)

    return call


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
    #: The names of the settings that they contain: arguments of the constructor, and attributes.
    setting_names: ClassVar[tuple[str, ...]]
    _state: State
    _model: WarmStartedModel | None

    def __init__(
        self, model: WarmStartedModel | None, random_state: int | None, path: str | os.PathLike[str] | None
    ) -> None:
        seed: Any = np.random.SeedSequence().generate_state(1)[0] if random_state is None else random_state
        expect("random_state", seed, "a whole number of at least 0, or None", is_whole(seed) and seed >= 0)
        self.random_state = int(seed)
        self.path = None if path is None else Path(path).absolute()
        self._model = model
        self._files, self._turn = LoopFiles(), threading.RLock()

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
        pandas = imported("pandas", part="history", extra="compare")
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
            while self._played(source, n_observations):
                show(self.n_observed, self._summary())
        return self

    @one_at_a_time
    def _played(self, source: Any, n_observations: int) -> bool:
        """Play a round, or return False if there is none left."""
        if self.n_observed >= n_observations or not self._can_ask():
            return False
        self._play_round(source, n_observations - self.n_observed)
        return True

    # --- what a kind of loop defines ------------------------------------------------

    def _settings(self) -> dict[str, Any]:
        """Return what `_from_settings` needs besides the estimator, as values that can be saved."""
        return {name: getattr(self, name) for name in self.setting_names}

    @classmethod
    def _checked_settings(cls, settings: Any) -> dict[str, Any]:
        """Return the settings of a file. The constructor checks their values."""
        return checked_fields("settings", settings, cls.setting_names)

    @classmethod
    @abc.abstractmethod
    def _from_settings(cls, settings: dict[str, Any], model: WarmStartedModel | None) -> Self:
        """Return a new loop with the settings and the estimator of a file."""

    @abc.abstractmethod
    def _checked_state(self, fields: Any) -> State:
        """Return the state whose fields a file contains, or raise an error if it does not suit the settings."""

    @abc.abstractmethod
    def _data_shape(self) -> tuple[int, int]:
        """Return the numbers of rows and of columns of all the data that a fit can have used so far."""

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

    def _commit(self, state: State, model: WarmStartedModel | None = None) -> None:
        """Write a new state, and a new model if there is one, to the file, then adopt them.

        If the file cannot be written, or another loop has changed it, nothing changes.
        """
        model = self._model if model is None else model
        if self.path is not None:
            saved = None if model is None else model.content()
            content = {"settings": self._settings(), "state": vars(state), "model": saved}
            self._files.write(self.path, self.kind, content)
        vars(self).update(_state=state, _model=model)  # both or, if it is interrupted, none

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_turn"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _turn=threading.RLock())

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
        return cls._loaded(path, estimator, {})

    @classmethod
    def _loaded(cls, path: str | os.PathLike[str], estimator: Any, changes: dict[str, Any]) -> Self:
        """Return the loop that a file describes, with some settings changed."""
        files, source = LoopFiles(), Path(path).absolute()
        found = files.read(source, cls.kind)
        with continuing(path):
            content = checked_fields("content", present_content(cls.kind, found), ("settings", "state", "model"))
            settings = cls._checked_settings(content["settings"])
            model = None if content["model"] is None else WarmStartedModel.restored(content["model"], estimator)
            loop = cls._from_settings({**settings, **changes}, model)
            loop._state, loop._model = loop._checked_state(content["state"]), model
            loop._expect_suitable_fit()
        loop.path, loop._files = source, files
        return loop

    def _expect_suitable_fit(self) -> None:
        """Raise an error if the fit of a file cannot be one to the data of the file."""
        if self._model is not None and self._model.fitted is not None:
            n_rows, n_columns = self._data_shape()
            checked_count("model: n_rows", self._model.n_rows, 1, n_rows)
            width = self._model.fitted.n_features_in_
            expect_content("model: n_features_in_", width, f"{n_columns} columns, as the data have", width == n_columns)


@contextlib.contextmanager
def _progress(verbose: bool, total: int) -> Iterator[Callable[[int, str], None]]:
    """Yield a function that is called with the progress and a text, and draws a progress bar if `verbose`."""
    if not verbose:
        yield lambda done, text: None
        return
    with new_bar() as bar:
        task = bar.add_task("", total=total)
        yield lambda done, text: bar.update(task, completed=min(done, total), description=text)
