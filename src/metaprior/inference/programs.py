"""The compiled loop with its data and its state: for one run, or for several of one shape side by side."""

import abc
import dataclasses
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh

from metaprior.inference import steps
from metaprior.inference.data import Data, StepConfig, padded
from metaprior.inference.devices import placed, replicated
from metaprior.inference.recipe import Recipe
from metaprior.inference.rules import History
from metaprior.inference.runs import Run
from metaprior.inference.steps import State, stacked_states, start_state, state_of
from metaprior.model import Model

#: The most runs that are one program.
LARGEST_GROUP = 5

S = TypeVar("S")


@dataclasses.dataclass(frozen=True)
class Block(Generic[S]):
    """The outcome of a block of steps: the state after it, and for every run its terms and whether all is finite."""

    state: S
    records: list[History]
    finite: list[bool]


class Program(abc.ABC, Generic[S]):
    """The compiled loop of one run, or of several side by side, and where it is."""

    state: S

    @abc.abstractmethod
    def advance(self, runs: Sequence[Run], recipe: Recipe, stop: int) -> Block[S]:
        """Make the steps up to `stop`. The program itself stays where it is until `state` is set."""

    @property
    @abc.abstractmethod
    def step(self) -> int:
        """The number of the next step."""

    @property
    @abc.abstractmethod
    def num_rows(self) -> list[int]:
        """The number of every run's rows."""

    @abc.abstractmethod
    def model(self, index: int) -> Model:
        """Return the present model of one run."""


@final
class SingleRun(Program[State]):
    """One run, on one device or with its rows spread over a mesh."""

    def __init__(
        self,
        model: Model,
        data: Data,
        step_config: StepConfig,
        optimizer: optax.GradientTransformation,
        mesh: Mesh | None,
    ) -> None:
        state = start_state(model, optimizer, data.x.dtype)
        self.state = state if mesh is None else replicated(state, mesh)
        self.data = data if mesh is None else placed(data, step_config, mesh)
        self.step_config, self.optimizer, self.mesh = step_config, optimizer, mesh

    def advance(self, runs: Sequence[Run], recipe: Recipe, stop: int) -> Block[State]:
        """Make the steps up to `stop`."""
        (run,) = runs
        state, terms = steps.step_block(*self._arguments(run, recipe, stop))
        record = {name: np.asarray(each) for name, each in terms.items()}
        return Block(state, [record], [is_finite(state.model) and is_finite(record)])

    def text(self, run: Run, recipe: Recipe) -> str:
        """Return the compiled program as text; the next call of `advance` finds it traced."""
        return steps.step_block.lower(*self._arguments(run, recipe, self.step)).as_text()

    def _arguments(self, run: Run, recipe: Recipe, stop: int) -> tuple[Any, ...]:
        """Return the arguments of a block of steps."""
        values = (recipe, np.asarray(run.backoff, np.float32), np.asarray(stop, np.int32))
        return self.state, run.key, self.data, *values, self.step_config, self.optimizer, self.mesh

    @property
    def step(self) -> int:
        """The number of the next step."""
        return int(self.state.step)

    @property
    def num_rows(self) -> list[int]:
        """The number of rows."""
        return [int(self.data.num_rows)]

    def model(self, index: int) -> Model:
        """Return the present model."""
        return self.state.model


@final
class BatchedRuns(Program[list[State]]):
    """Several runs of one shape, each with its own data: in groups that are one program, the groups over threads.

    A group's arrays stay in a core's cache, which those of all runs would not; threads keep all cores busy where the
    operations of a small network are too small to be shared out.
    """

    def __init__(
        self,
        models: Sequence[Model],
        data: Sequence[Data],
        step_config: StepConfig,
        optimizer: optax.GradientTransformation,
    ) -> None:
        size = max(own.x.shape[0] for own in data)
        self.rows_of_runs = [int(own.num_rows) for own in data]
        self.groups = groups_of(len(models), num_threads())
        self.data = [
            jax.tree.map(lambda *leaves: np.stack(leaves), *[padded(data[index], size) for index in group])
            for group in self.groups
        ]
        dtype = self.data[0].x.dtype
        starts = [start_state(model, optimizer, dtype) for model in models]
        self.state = [stacked_states([starts[index] for index in group]) for group in self.groups]
        self.step_config, self.optimizer, self.compiled = step_config, optimizer, False

    def advance(self, runs: Sequence[Run], recipe: Recipe, stop: int) -> Block[list[State]]:
        """Make the steps up to `stop`, every group in a thread."""
        x64 = jax.dtypes.canonicalize_dtype(np.float64) == np.float64  # a setting of this thread

        def one(number: int, stop: int = stop) -> tuple[State, History]:
            with jax.enable_x64(x64):
                return self._advance_group(number, runs, recipe, stop)

        if not self.compiled:
            one(0, self.step)  # no step: two threads would compile the same program twice
            self.compiled = True
        with ThreadPoolExecutor(num_threads()) as threads:
            results = list(threads.map(one, range(len(self.groups))))
        records: dict[int, History] = {}
        finite: dict[int, bool] = {}
        for group, (state, terms) in zip(self.groups, results, strict=True):
            records |= {run: {name: own[i] for name, own in terms.items()} for i, run in enumerate(group)}
            finite |= dict(zip(group, _each_finite(state.model, len(group)), strict=True))
        order = range(len(runs))
        good = [finite[index] and is_finite(records[index]) for index in order]
        return Block([state for state, _ in results], [records[index] for index in order], good)

    def _advance_group(self, number: int, runs: Sequence[Run], recipe: Recipe, stop: int) -> tuple[State, History]:
        own = [runs[index] for index in self.groups[number]]
        keys, backoffs = jnp.stack([run.key for run in own]), np.array([run.backoff for run in own], np.float32)
        values = (recipe, backoffs, np.asarray(stop, np.int32))
        state, terms = steps.step_block_of_many(
            self.state[number], keys, self.data[number], *values, self.step_config, self.optimizer
        )
        return state, {name: np.asarray(each) for name, each in terms.items()}

    @property
    def step(self) -> int:
        """The number of the next step, the same for all runs."""
        return int(self.state[0].step)

    @property
    def num_rows(self) -> list[int]:
        """The number of every run's rows."""
        return self.rows_of_runs

    def model(self, index: int) -> Model:
        """Return the present model of one run."""
        number = next(n for n, group in enumerate(self.groups) if index in group)
        return state_of(self.state[number], self.groups[number].index(index)).model


def groups_of(num_runs: int, num_threads: int) -> list[list[int]]:
    """Cut runs into groups of one size, at most `LARGEST_GROUP`, as many as the threads share evenly.

    Where they do not come out even the last run fills up the last groups: its copies are computed and dropped.
    """
    least = -(-num_runs // LARGEST_GROUP)
    count = min(-(-least // num_threads) * num_threads, num_runs)
    size = -(-num_runs // count)
    places = [min(place, num_runs - 1) for place in range(-(-num_runs // size) * size)]
    return [places[start : start + size] for start in range(0, len(places), size)]


def num_threads() -> int:
    """Return how many threads XLA computes with: NPROC where it is set, else the number of cores."""
    return int(os.environ.get("NPROC") or os.cpu_count() or 1)


def is_finite(tree: object) -> bool:
    """Return whether all numbers of a tree are finite."""
    # in NumPy: in the compiled program every leaf's check would cost compile time
    return all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array)))


def _each_finite(models: Model, count: int) -> list[bool]:
    """Return the same for every run of a stacked model."""
    leaves = jax.tree.leaves(eqx.filter(models, eqx.is_inexact_array))
    return np.all([np.isfinite(np.asarray(a)).reshape(count, -1).all(axis=1) for a in leaves], axis=0).tolist()
