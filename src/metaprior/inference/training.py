"""Training: the compiled loop called in blocks of steps, so that progress shows and a bad turn can be undone.

A block of steps that ends non-finite is thrown away: training goes on from the last good state with half the step.
Runs of one shape (seeds, splits, restarts) can go side by side in one program, each as it would go alone.
"""

import dataclasses
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import optax
from jax.sharding import Mesh
from jaxtyping import Array, Key

from metaprior.inference.data import Data, StepConfig
from metaprior.inference.identity import Identity, identity_of
from metaprior.inference.programs import BatchedRuns, Block, Program, SingleRun
from metaprior.inference.recipe import Recipe, Settling
from metaprior.inference.resuming import CheckpointWriter
from metaprior.inference.rules import StopRule
from metaprior.inference.runs import Fit, Listener, Progress, Run
from metaprior.inference.snapshots import CheckpointStore
from metaprior.inference.steps import STEP_BLOCK, adam_for
from metaprior.model import Model

_RECIPE, _STEP_CONFIG = Recipe(), StepConfig()


def train(
    model: Model,
    data: Data,
    key: Key[Array, ""],
    *,
    recipe: Recipe = _RECIPE,
    step_config: StepConfig = _STEP_CONFIG,
    optimizer: optax.GradientTransformation | None = None,
    listener: Listener | None = None,
    stop_when: StopRule | None = None,
    mesh: Mesh | None = None,
    checkpoint_store: CheckpointStore | None = None,
    settling: Settling | None = None,
) -> Fit:
    """Fit a model by maximising its ELBO.

    `optimizer` None is Adam. `listener` is told after every block of steps; `stop_when` is asked then, once the recipe
    has let everything in, whether the run may end early, and its best model, where it has one, is the run's. A `mesh`
    (`inference.row_mesh`) spreads the rows of every step. A `checkpoint_store` keeps snapshots; where it has one, the
    run goes on from there and ends with the same bits. With `settling` the number of steps is at most the recipe's:
    the rate begins to fall once the bound is flat.
    """
    program = SingleRun(model, data, step_config, adam_for(model) if optimizer is None else optimizer, mesh)
    run = Run(key, stop_when)
    loop = _Loop(program, [run], recipe, settling, listener)
    if checkpoint_store is not None:
        loop.checkpoints = CheckpointWriter(checkpoint_store, program, run, loop.identity(program, run))
    (fit,) = loop.run()
    if loop.checkpoints is not None:
        loop.checkpoints.after_run()
    return fit


def train_many(
    models: Sequence[Model],
    data: Sequence[Data],
    keys: Sequence[Key[Array, ""]],
    *,
    recipe: Recipe = _RECIPE,
    step_config: StepConfig = _STEP_CONFIG,
    optimizer: optax.GradientTransformation | None = None,
    listener: Listener | None = None,
    stop_when: Sequence[StopRule | None] | None = None,
    settling: Settling | None = None,
) -> list[Fit]:
    """Fit models of one shape side by side in one compiled program: seeds, splits, restarts.

    Each run is what `train` with its model, data (padded to the longest) and key gives, up to the order of sums. The
    listener is told the means over runs; a run that its rule ends keeps the model it had then, or the rule's best. With
    `settling` all runs settle together, once the last of them is flat.
    """
    if not len(models) == len(data) == len(keys) > 0:
        raise ValueError(
            f"expected as many models as data and keys, and at least one; got {len(models)}, {len(data)}, {len(keys)}."
        )
    program = BatchedRuns(models, data, step_config, adam_for(models[0]) if optimizer is None else optimizer)
    rules = [None] * len(models) if stop_when is None else stop_when
    runs = [Run(key, rule) for key, rule in zip(keys, rules, strict=True)]
    return _Loop(program, runs, recipe, settling, listener).run()


class _Schedule(NamedTuple):
    """How many steps there will be, the recipe for them, and whether the bounds of all runs have become flat."""

    num_steps: int
    recipe: Recipe
    flat: bool


@dataclasses.dataclass
class _Loop:
    """Calls a program block after block until all its runs have ended."""

    program: Program[Any]
    runs: Sequence[Run]
    recipe: Recipe
    settling: Settling | None
    listener: Listener | None
    checkpoints: CheckpointWriter | None = None

    def identity(self, program: SingleRun, run: Run) -> Identity:
        """Return what tells a run from others, before its first step: all that the loop has, but those who look on."""
        elsewhere = ("program", "runs", "listener", "checkpoints")
        own = {name: value for name, value in vars(self).items() if name not in elsewhere}
        return identity_of({**own, **vars(program), **vars(run)}, program.text(run, self._schedule().recipe))

    def run(self) -> list[Fit]:
        """Make all steps and return the ends of the runs."""
        begun, schedule = time.perf_counter(), self._schedule()
        while self.program.step < schedule.num_steps and not all(run.ended for run in self.runs):
            first = self.program.step
            last = min(first + STEP_BLOCK, schedule.num_steps)
            block = self.program.advance(self.runs, schedule.recipe, last)
            if self._rolled_back(block, first):
                continue
            self._accept(block, last - first)
            if self.listener is not None:
                seconds = time.perf_counter() - begun
                self.listener(Progress(last, schedule.num_steps, self._last_means(), seconds))
            if last / schedule.num_steps >= max(float(self.recipe.normals_full), float(self.recipe.kl_full)):
                self._end_early()
            schedule = self._schedule()
            if self.checkpoints is not None:
                self.checkpoints.after_block()
        for index, run in enumerate(self.runs):
            if run.ended is None:
                run.end(self.program.model(index), converged=schedule.flat)
        return [run.ended for run in self.runs if run.ended is not None]

    def _schedule(self) -> _Schedule:
        """Return what is to come. It follows from the history alone, so that a resumed run settles as it would have."""
        most = num_steps = int(self.recipe.num_steps)
        flat_at = None if self.settling is None else self._flat_at(self.settling)
        if flat_at is not None:
            num_steps = min(num_steps, max(flat_at + 1, round(flat_at / float(self.recipe.decay_starts))))
        recipe = Recipe(*[np.asarray(v, np.float32) for v in self.recipe._replace(num_steps=num_steps)])
        return _Schedule(num_steps, recipe, flat_at is not None and num_steps < most)

    def _flat_at(self, settling: Settling) -> int | None:
        """Return the first step at which the bounds of all runs were flat, None where that is still to come."""
        pairs = zip(self.runs, self.program.num_rows, strict=True)
        found = [settling.flat_at(run.history()["elbo"], num_rows) for run, num_rows in pairs]
        return None if None in found else max(step for step in found if step is not None)

    def _rolled_back(self, block: Block[Any], step: int) -> bool:
        """Roll back the runs that have turned non-finite; return whether there are any."""
        bad = [run for run, finite in zip(self.runs, block.finite, strict=True) if run.ended is None and not finite]
        for run in bad:
            run.roll_back(step)
        return bool(bad)

    def _accept(self, block: Block[Any], num_steps: int) -> None:
        """Go on from the end of a block, and note its terms."""
        self.program.state = block.state
        for run, record in zip(self.runs, block.records, strict=True):
            run.blocks.append({name: terms[:num_steps] for name, terms in record.items()})

    def _end_early(self) -> None:
        for index, run in enumerate(self.runs):
            if run.ended is None and run.stop_rule is not None:
                model = self.program.model(index)
                if run.stop_rule.should_stop(model, run.history()):
                    run.end(model, converged=True)

    def _last_means(self) -> dict[str, float]:
        """Return the mean of every term over the last block of steps and all runs."""
        last = [run.blocks[-1] for run in self.runs]
        return {name: float(np.mean([terms[name] for terms in last])) for name in last[0]}
