"""A fit in phases: the usual one, or a coarse one before a fine one.

A step of a local layer's exact regime costs N^3, through M inducing rows N M^2. Through few inducing rows, with few of
the data in a step, the layers below the output learn nearly what they would learn from the whole. So from `COARSE_FROM`
rows on, a coarse phase goes until its bound is flat. The fine phase of the exact regime then goes on through rows that
say as much as all (`chosen_rows`): its bound is the exact one to a part of a nat, and the model that it ends with is
conditioned on all rows. Where that would take most of the rows, it takes all of them.
"""

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Key

from metaprior.chosen_rows import chosen_rows
from metaprior.inference import Batch, Data, Fit, Recipe, Settling, StepConfig
from metaprior.model import Model
from metaprior.output_layer import Exact, InducingRows, OutputLayer

#: Rows from which on a fit of the exact regime begins coarse, and the inducing rows it begins with.
COARSE_FROM, COARSE_ROWS = 200, 96
#: Rows of a step of the coarse phase at the most, drawn anew for every step. On ten tables of 7,400 rows that no report
#: scores, bounds end 3 nats of thousands below those of 2,048 rows, after nine tenths of the time.
COARSE_BATCH = 1024
#: Steps between two looks at the coarse phase's bound, and the rise per row below which it ends. The fine phase goes on
#: from there, so it may end early: on those ten tables bounds end 4 nats lower after nine tenths of the time, and on
#: twenty of 300 and 700 rows with an input kernel at most 1.2 nats lower after three quarters of the steps.
COARSE_WINDOW, COARSE_FLAT = 25, 0.004
#: The part of the coarse phase in which its rate rises: as many steps as in a fit of one phase.
COARSE_RISE = 0.04
#: Steps between two looks at the fine phase's bound, and the part of the coarse phase's rate that it has.
FINE_WINDOW, FINE_RATE = 25, 0.5
#: The largest variance of a value given the fine phase's rows, in variances of the noise, and draws of the layers below
#: that they are chosen for.
FINE_TOLERANCE, FINE_DRAWS = 1e-3, 4


class Phase(NamedTuple):
    """A part of a fit: what makes models ready for it, how it goes, when it has converged, and what it ends with.

    `most_rows` bounds the rows of a step.
    """

    ready: Callable[[Sequence[Model], Sequence[Data]], list[Model]]
    recipe: Recipe
    settling: Settling | None
    ended: Callable[[Model], Model]
    most_rows: int | None = None

    def step_config(self, usual: StepConfig, num_rows: int) -> StepConfig:
        """Return how many rows and draws a step of this phase takes."""
        if self.most_rows is None or num_rows <= self.most_rows:
            return usual
        return usual._replace(batch_size=self.most_rows)


def usual_phase(recipe: Recipe, settling: Settling | None) -> Phase:
    """Return the one phase of a usual fit."""
    return Phase(lambda models, _: list(models), recipe, settling, lambda model: model)


def coarse_phase(usual: Phase, coarse: OutputLayer) -> Phase:
    """Return a phase with a coarse output layer, or few rows in a step, which ends when it is flat."""
    assert usual.settling is not None
    recipe = usual.recipe._replace(num_steps=int(usual.recipe.num_steps) // 2, decay_starts=1.0, rises=COARSE_RISE)
    settling = usual.settling._replace(window=COARSE_WINDOW, per_row=COARSE_FLAT)
    return Phase(partial(_with_output, coarse), recipe, settling, lambda model: model, COARSE_BATCH)


def fine_phase(usual: Phase, output: OutputLayer) -> Phase:
    """Return a short phase with the output layer that is meant, after a coarse one."""
    assert usual.settling is not None
    rate = FINE_RATE * float(usual.recipe.learning_rate)
    recipe = usual.recipe._replace(num_steps=int(usual.recipe.num_steps) // 2, learning_rate=rate)
    settling = usual.settling._replace(window=FINE_WINDOW)
    return usual._replace(ready=partial(_with_output, output), recipe=recipe, settling=settling)


def exact_phase(phase: Phase, key: Key[Array, ""], jitter: float) -> Phase:
    """Return the phase through rows that say as much as all of the data; it ends with the exact output layer."""
    return phase._replace(ready=partial(_through_chosen_rows, key, jitter), ended=_exact)


def _with_output(output: OutputLayer, models: Sequence[Model], data: Sequence[Data]) -> list[Model]:
    return [dataclasses.replace(model, output=output) for model in models]


def _exact(model: Model) -> Model:
    return dataclasses.replace(model, output=Exact())


def _through_chosen_rows(
    key: Key[Array, ""], jitter: float, models: Sequence[Model], data: Sequence[Data]
) -> list[Model]:
    """Return the models with the rows that each needs, as many for each; with all rows where one needs most.

    There are no fewer than in the coarse phase: what it has compiled then serves this one.
    """
    pairs, number = list(zip(models, data, strict=True)), COARSE_ROWS
    for _ in range(2):  # the second time with as many as the one that needs most
        chosen = [chosen_rows(model, key, FINE_DRAWS, _batch(own), FINE_TOLERANCE, number) for model, own in pairs]
        number = max(0 if each is None else len(each) for each in chosen)
        if all(each is not None and len(each) == number for each in chosen):
            return [
                dataclasses.replace(model, output=InducingRows(np.asarray(own.x)[each], None, jitter))
                for (model, own), each in zip(pairs, chosen, strict=True)
            ]
    return [_exact(model) for model in models]


def _batch(data: Data) -> Batch:
    return Batch(data.x, data.y, data.weight)


def joined_fits(fits: Sequence[Fit]) -> Fit:
    """Return the last phase's model with the steps of all phases."""
    history = {name: np.concatenate([fit.history[name] for fit in fits]) for name in fits[-1].history}
    return Fit(
        fits[-1].model,
        history,
        sum(fit.num_steps for fit in fits),
        sum(fit.roll_backs for fit in fits),
        max(fit.jitter for fit in fits),
        all(fit.converged for fit in fits),
    )
