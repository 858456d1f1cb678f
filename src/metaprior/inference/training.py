"""Training: the compiled loop called in blocks of steps, so that progress shows and a bad turn can be undone.

A block of steps that ends non-finite is thrown away: training goes on from the last good state with half the step.
Runs of one shape (seeds, splits, restarts) can go side by side in one program, each as it would go alone.
"""

import abc
import dataclasses
import os
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh
from jaxtyping import Array, Key

from metaprior.inference import steps
from metaprior.inference.data import Data, StepConfig, padded
from metaprior.inference.devices import placed, replicated
from metaprior.inference.recipe import Recipe, Settling
from metaprior.inference.snapshots import CheckpointStore, Snapshot, filled, numbered
from metaprior.inference.steps import STEP_BLOCK, adam_for, stacked_states, start_state, state_of
from metaprior.model import Model
from metaprior.weights import WeightModel

#: How often a run may turn non-finite before it is given up.
MAX_RETREATS = 8
#: The most runs that are one program.
LARGEST_GROUP = 5

_RECIPE, _DRAWS = Recipe(), StepConfig()

History = dict[str, np.ndarray]


class Progress(NamedTuple):
    """What a listener is told after each block of steps."""

    step: int
    num_steps: int
    terms: dict[str, float]
    seconds: float


Listener = Callable[[Progress], None]
StopRule = Callable[[Model, History], bool]


class Fit(NamedTuple):
    """The end of a run: the model, the terms of every step, and what happened on the way."""

    model: Model
    history: History
    num_steps: int
    roll_backs: int
    jitter: float
    converged: bool


@dataclasses.dataclass
class Run:
    """What happened to a run so far."""

    key: Key[Array, ""]
    backoff: float = 1.0
    roll_backs: int = 0
    history: list[History] = dataclasses.field(default_factory=list)
    ended: Fit | None = None

    def roll_back(self, step: int) -> None:
        """Go on from the last good state with half the step and other numbers; give up where that does not help."""
        self.roll_backs, self.backoff = self.roll_backs + 1, self.backoff / 2
        _warn_of_roll_back(step, self.backoff, self.roll_backs)
        self.key = jax.random.fold_in(self.key, self.roll_backs)

    def end(self, model: Model, converged: bool) -> None:
        """Keep the model and what led to it."""
        terms = joined(self.history)
        jitter = float(np.max(terms.pop("jitter"), initial=0.0))
        report_jitter(model.weights, jitter)
        self.ended = Fit(model, terms, len(terms["elbo"]), self.roll_backs, jitter, converged)


class _Program(abc.ABC):
    """The compiled loop of one run, or of several side by side."""

    state: Any

    @abc.abstractmethod
    def advance(self, runs: Sequence[Run], values: Recipe, stop: int) -> tuple[Any, list[History]]:
        """Return the state after the steps up to `stop`, and every run's terms."""

    @abc.abstractmethod
    def step(self) -> int:
        """Return the number of the next step."""

    @abc.abstractmethod
    def num_rows(self) -> list[int]:
        """Return the number of every run's rows."""

    @abc.abstractmethod
    def finite(self, state: Any) -> np.ndarray:
        """Return, for every run, whether all its numbers are finite."""

    @abc.abstractmethod
    def of(self, state: Any, index: int) -> steps.State:
        """Return the state of one run."""


class _SingleRun(_Program):
    """One run, on one device or with its rows spread over a mesh."""

    def __init__(
        self, model: Model, data: Data, draws: StepConfig, optimiser: optax.GradientTransformation, mesh: Mesh | None
    ) -> None:
        state = start_state(model, optimiser, data.x.dtype)
        self.state = state if mesh is None else replicated(state, mesh)
        self.data = data if mesh is None else placed(data, draws, mesh)
        self.draws, self.optimiser, self.mesh = draws, optimiser, mesh

    def advance(self, runs: Sequence[Run], values: Recipe, stop: int) -> tuple[steps.State, list[History]]:
        backoff, rest = np.asarray(runs[0].backoff, np.float32), (self.draws, self.optimiser, self.mesh)
        state, records = steps.step_block(
            self.state, runs[0].key, self.data, values, backoff, np.asarray(stop, np.int32), *rest
        )
        return state, [{name: np.asarray(values) for name, values in records.items()}]

    def step(self) -> int:
        return int(self.state.step)

    def num_rows(self) -> list[int]:
        return [int(self.data.num_rows)]

    def finite(self, state: steps.State) -> np.ndarray:
        return np.array([_finite(state.model)])

    def of(self, state: steps.State, index: int) -> steps.State:
        return state


class _BatchedRuns(_Program):
    """Several runs of one shape, each with its own data: in groups that are one program, the groups over threads.

    A group's arrays stay in a core's cache, which those of all runs would not; threads keep all cores busy where the
    operations of a small network are too small to be shared out.
    """

    def __init__(
        self,
        models: Sequence[Model],
        data: Sequence[Data],
        draws: StepConfig,
        optimiser: optax.GradientTransformation,
    ) -> None:
        size = max(own.x.shape[0] for own in data)
        self.rows_of_runs = [int(own.num_rows) for own in data]
        self.groups = groups_of(len(models), num_threads())
        self.data = [
            jax.tree.map(lambda *leaves: np.stack(leaves), *[padded(data[index], size) for index in group])
            for group in self.groups
        ]
        dtype = self.data[0].x.dtype
        starts = [start_state(model, optimiser, dtype) for model in models]
        self.state = [stacked_states([starts[index] for index in group]) for group in self.groups]
        self.draws, self.optimiser, self.compiled = draws, optimiser, False

    def advance(self, runs: Sequence[Run], values: Recipe, stop: int) -> tuple[list[steps.State], list[History]]:
        x64 = jax.dtypes.canonicalize_dtype(np.float64) == np.float64  # a setting of this thread

        def one(number: int, stop: int = stop) -> tuple[steps.State, dict[str, np.ndarray]]:
            own = [runs[index] for index in self.groups[number]]
            keys, backoffs = jnp.stack([run.key for run in own]), np.array([run.backoff for run in own], np.float32)
            rest = (backoffs, np.asarray(stop, np.int32), self.draws, self.optimiser)
            with jax.enable_x64(x64):
                state, records = steps.step_block_of_many(self.state[number], keys, self.data[number], values, *rest)
                return state, {name: np.asarray(values) for name, values in records.items()}

        if not self.compiled:
            one(0, self.step())  # no step: two threads would compile the same program twice
            self.compiled = True
        with ThreadPoolExecutor(num_threads()) as threads:
            results = list(threads.map(one, range(len(self.groups))))
        records: dict[int, History] = {}
        for group, (_, terms) in zip(self.groups, results, strict=True):
            records |= {run: {name: own[i] for name, own in terms.items()} for i, run in enumerate(group)}
        return [state for state, _ in results], [records[index] for index in range(len(runs))]

    def step(self) -> int:
        return int(self.state[0].step)

    def num_rows(self) -> list[int]:
        return self.rows_of_runs

    def finite(self, state: list[steps.State]) -> np.ndarray:
        good = np.ones(max(max(group) for group in self.groups) + 1, bool)
        for group, own in zip(self.groups, state, strict=True):
            leaves = jax.tree.leaves(eqx.filter(own.model, eqx.is_inexact_array))
            good[group] &= np.all([np.isfinite(np.asarray(a)).reshape(len(group), -1).all(axis=1) for a in leaves], 0)
        return good

    def of(self, state: list[steps.State], index: int) -> steps.State:
        number = next(n for n, group in enumerate(self.groups) if index in group)
        return state_of(state[number], self.groups[number].index(index))


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
    """Return how many threads XLA computes with: NPROC where it is set, else the cores."""
    return int(os.environ.get("NPROC") or os.cpu_count() or 1)


def train(
    model: Model,
    data: Data,
    key: Key[Array, ""],
    *,
    recipe: Recipe = _RECIPE,
    draws: StepConfig = _DRAWS,
    optimiser: optax.GradientTransformation | None = None,
    listener: Listener | None = None,
    stop_when: StopRule | None = None,
    mesh: Mesh | None = None,
    checkpoint_store: CheckpointStore | None = None,
    settling: Settling | None = None,
) -> Fit:
    """Fit a model by maximising its ELBO.

    `optimiser` None is Adam. `listener` is told after every block of steps; `stop_when` is asked then, once the recipe
    has let everything in, whether the run may end early; a rule that has `kept` a model is where the run's model comes
    from. A `mesh` (`inference.row_mesh`) spreads the rows of every step. A `checkpoint_store` keeps snapshots; where it
    has one, the run goes on from there and ends with the same bits. With `settling` the number of steps is at most
    the recipe's: the rate begins to fall once the bound is flat.
    """
    program, run = _SingleRun(model, data, draws, adam_for(model) if optimiser is None else optimiser, mesh), Run(key)
    if checkpoint_store is None:
        return _run_loop(program, [run], recipe, listener, [stop_when], settling=settling)[0]
    known = checkpoint_store.load()
    if known is not None:
        _go_on_from(known, program, run, stop_when)
    kept = _Kept(checkpoint_store, program, run, stop_when)
    fit = _run_loop(program, [run], recipe, listener, [stop_when], kept, settling)[0]
    if known is None or program.step() > kept.last or fit.converged != known.numbers["converged"]:
        checkpoint_store.save(snapshot_of(program, run, stop_when))
    return fit


def train_many(
    models: Sequence[Model],
    data: Sequence[Data],
    keys: Sequence[Key[Array, ""]],
    *,
    recipe: Recipe = _RECIPE,
    draws: StepConfig = _DRAWS,
    optimiser: optax.GradientTransformation | None = None,
    listener: Listener | None = None,
    stop_when: Sequence[StopRule | None] | None = None,
    settling: Settling | None = None,
) -> list[Fit]:
    """Fit models of one shape side by side in one compiled program: seeds, splits, restarts.

    Each run is what `train` with its model, data (padded to the longest) and key gives, up to the order of sums. The
    listener is told the means over runs; a run that its rule ends keeps the model it had then, or the rule's. With
    `settling` all runs settle together, once the last of them is flat.
    """
    if not len(models) == len(data) == len(keys) > 0:
        raise ValueError(
            f"expected as many models as data and keys, and at least one; got {len(models)}, {len(data)}, {len(keys)}."
        )
    program = _BatchedRuns(models, data, draws, adam_for(models[0]) if optimiser is None else optimiser)
    rules = [None] * len(models) if stop_when is None else stop_when
    return _run_loop(program, [Run(key) for key in keys], recipe, listener, rules, settling=settling)


def _run_loop(
    program: _Program,
    runs: Sequence[Run],
    recipe: Recipe,
    listener: Listener | None,
    rules: Sequence[StopRule | None],
    after: Callable[[int], None] = lambda step: None,
    settling: Settling | None = None,
) -> list[Fit]:
    """Call the compiled loop, block after block, until all runs have ended; `after` is told of each."""
    begun = time.perf_counter()
    num_steps, values, flat = _settled(program, runs, recipe, settling)
    settles = max(float(recipe.noise_full), float(recipe.kl_full))
    while program.step() < num_steps and not all(run.ended for run in runs):
        first = program.step()
        last = min(first + STEP_BLOCK, num_steps)
        new, records = program.advance(runs, values, last)
        if _rolled_back(program, new, records, runs, first):
            continue
        program.state = new
        for run, record in zip(runs, records, strict=True):
            run.history.append({name: terms[: last - first] for name, terms in record.items()})
        if listener is not None:
            listener(Progress(last, num_steps, _last_means(runs), time.perf_counter() - begun))
        if last / num_steps >= settles:
            _end_early(program, runs, rules)
        num_steps, values, flat = _settled(program, runs, recipe, settling)
        after(last)
    for index, (run, rule) in enumerate(zip(runs, rules, strict=True)):
        if run.ended is None:
            run.end(_model_at_end(program, index, rule), converged=flat)
    return [run.ended for run in runs if run.ended is not None]


def _settled(
    program: _Program, runs: Sequence[Run], recipe: Recipe, settling: Settling | None
) -> tuple[int, Recipe, bool]:
    """Return how many steps there will be, the recipe for them, and whether all runs have become flat.

    It follows from the history alone, so that a run that goes on from a snapshot settles as it would have.
    """
    num_steps = int(recipe.num_steps)
    steps = None if settling is None else _flat_at(program, runs, settling)
    if steps is not None:
        num_steps = min(num_steps, max(steps + 1, round(steps / float(recipe.decay_starts))))
    values = Recipe(*[np.asarray(v, np.float32) for v in recipe._replace(num_steps=num_steps)])
    return num_steps, values, steps is not None and num_steps < int(recipe.num_steps)


def _flat_at(program: _Program, runs: Sequence[Run], settling: Settling) -> int | None:
    """Return the first step at which the bounds of all runs were flat, None where that is still to come."""
    found = [
        settling.flat_at(joined(run.history)["elbo"], num_rows)
        for run, num_rows in zip(runs, program.num_rows(), strict=True)
    ]
    return None if None in found else max(step for step in found if step is not None)


class _Kept:
    """Saves a snapshot whenever `every` steps have passed."""

    def __init__(self, checkpoint_store: CheckpointStore, program: _SingleRun, run: Run, rule: StopRule | None) -> None:
        self.checkpoint_store, self.program, self.run, self.rule = checkpoint_store, program, run, rule
        self.last = program.step()

    def __call__(self, step: int) -> None:
        if step - self.last >= self.checkpoint_store.every:
            self.checkpoint_store.save(snapshot_of(self.program, self.run, self.rule))
            self.last = step


def snapshot_of(program: _SingleRun, run: Run, rule: StopRule | None) -> Snapshot:
    """Return all that a run needs to go on."""
    arrays = numbered("state", program.state) | numbered("kept", getattr(rule, "kept", None))
    arrays["key"] = np.asarray(jax.random.key_data(run.key))
    terms = joined(run.history)
    arrays |= {f"term {name}": values for name, values in terms.items() if name != "elbo"}
    converged = run.ended is not None and run.ended.converged
    rule_progress: dict[str, float] = getattr(rule, "progress", dict)()
    numbers = {"backoff": run.backoff, "retreats": run.roll_backs, "converged": converged, "rule": rule_progress}
    return Snapshot(arrays, numbers)


def _go_on_from(known: Snapshot, program: _SingleRun, run: Run, rule: StopRule | None) -> None:
    """Put a run where a snapshot was taken."""
    state = filled("state", program.state, known.arrays)
    program.state = state if program.mesh is None else replicated(state, program.mesh)
    run.key = jax.random.wrap_key_data(jnp.asarray(known.arrays["key"]), impl=jax.random.key_impl(run.key))
    run.backoff, run.roll_backs = known.numbers["backoff"], known.numbers["retreats"]
    terms = {name.removeprefix("term "): a for name, a in known.arrays.items() if name.startswith("term ")}
    run.history = [terms] if program.step() else []
    if rule is not None and known.numbers["rule"]:
        kept = filled("kept", state.model, known.arrays) if "kept 0" in known.arrays else None
        rule.resume(known.numbers["rule"], kept)  # type: ignore[attr-defined]
    if known.numbers["converged"]:
        run.end(_model_at_end(program, 0, rule), converged=True)


def _rolled_back(program: _Program, new: Any, records: Sequence[History], runs: Sequence[Run], step: int) -> bool:
    """Send runs that have turned non-finite back; return whether there are any."""
    good = program.finite(new)
    bad = [
        run
        for run, is_good, record in zip(runs, good, records, strict=True)
        if run.ended is None and not (is_good and _finite(record))
    ]
    for run in bad:
        run.roll_back(step)
    return bool(bad)


def _end_early(program: _Program, runs: Sequence[Run], rules: Sequence[StopRule | None]) -> None:
    for index, (run, rule) in enumerate(zip(runs, rules, strict=True)):
        if rule is not None and run.ended is None:
            model = program.of(program.state, index).model
            if rule(model, joined(run.history)):
                run.end(_model_at_end(program, index, rule), converged=True)


def _model_at_end(program: _Program, index: int, rule: StopRule | None) -> Model:
    """Return the model that a run ends with: what its rule has kept, else its last."""
    kept = getattr(rule, "kept", None)
    return program.of(program.state, index).model if kept is None else kept


def _last_means(runs: Sequence[Run]) -> dict[str, float]:
    """Return the mean of every term over the last block of steps and all runs."""
    last = [run.history[-1] for run in runs]
    return {name: float(np.mean([terms[name] for terms in last])) for name in last[0]}


def joined(history: list[History]) -> History:
    """Return every term as one array over steps, the ELBO (with its KL in full) among them."""
    if not history:
        return {"jitter": np.zeros(0), "elbo": np.zeros(0)}
    terms = {name: np.concatenate([part[name] for part in history]) for name in history[0]}
    total = sum(value for name, value in terms.items() if name.startswith("kl_"))
    return {**terms, "elbo": terms["log_likelihood"] - total}


def _finite(tree: object) -> bool:
    # in NumPy: in the compiled program every leaf's check would cost compile time
    return all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array)))


class ConvergenceTrouble(UserWarning):
    """A run met a numerical difficulty and dealt with it."""


def _warn_of_roll_back(step: int, backoff: float, roll_backs: int) -> None:
    if roll_backs > MAX_RETREATS:
        raise FloatingPointError(
            f"training turned non-finite {roll_backs} times near step {step}, even with the step size cut to "
            f"{backoff:g} of its start; lower the learning rate, look for extreme values in the data, or take "
            "dtype='float64'."
        )
    warnings.warn(
        f"training turned non-finite after step {step}; going on from there with {backoff:g} of the step size.",
        ConvergenceTrouble,
        stacklevel=3,
    )


def report_jitter(weights: WeightModel, jitter: float) -> None:
    """Warn where a factor took more jitter than it starts with."""
    start = getattr(weights, "start_jitter", jitter)
    if jitter > 1.5 * start:
        warnings.warn(
            f"a Cholesky factor needed a relative jitter of {jitter:g} (usual: {start:g}); codes or inputs may "
            "coincide: fewer inducing codes, or dtype='float64', would help.",
            ConvergenceTrouble,
            stacklevel=3,
        )
