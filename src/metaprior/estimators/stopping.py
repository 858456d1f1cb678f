"""When a run may end early: a flat ELBO, or a held-out score that no longer rises.

Both are stop rules of training (`inference.StopRule`). The ELBO says nothing before the recipe has let everything in:
until then it moves because the recipe does. A held-out score also says which model is the best so far, and the run
ends with that one.
"""

import dataclasses
from typing import final

import jax
import jax.numpy as jnp
import numpy as np

from metaprior.compilation import compiled
from metaprior.inference import Batch, Data, History
from metaprior.inference.elbo import elbo_terms
from metaprior.inference.steps import STEP_BLOCK
from metaprior.model import Model
from metaprior.output_layer import FunctionGP
from metaprior.random import StandardNormals, draw_normals
from metaprior.types import is_array

#: Draws of the layers below an integrated output layer that a held-out score is the mean of.
HELD_OUT_DRAWS = 4


@dataclasses.dataclass
class Patience:
    """Counts the scores in a row that have not risen by `tol` above the best before them."""

    tol: float
    patience: int
    best: float = -np.inf
    waited: int = 0

    def ends_with(self, score: float) -> bool:
        """Take the next score; return whether there were `patience` in a row without a rise."""
        if score > self.best + self.tol:
            self.best, self.waited = score, 0
        else:
            self.waited += 1
        return self.waited >= self.patience

    def progress(self) -> dict[str, float]:
        """Return the numbers that the next call depends on."""
        return {"best": float(self.best), "waited": self.waited}

    def resume(self, progress: dict[str, float]) -> None:
        """Go on from what `progress` gave."""
        self.best, self.waited = progress["best"], int(progress["waited"])


@final
class FlatElbo:
    """Stop when the mean ELBO of a block of steps has not risen by `tol` nats per datum for `patience` blocks."""

    #: The last ELBO is as good as any: the run ends with its last model.
    best_model: Model | None = None

    def __init__(self, tol: float, patience: int, num_rows: float) -> None:
        self.patience, self.num_rows = Patience(tol, patience), num_rows

    def score(self, history: History) -> float:
        """Return the mean ELBO of the last block of steps, per datum."""
        return float(np.mean(history["elbo"][-STEP_BLOCK:])) / self.num_rows

    def should_stop(self, model: Model, history: History) -> bool:
        """Return whether to stop."""
        return self.patience.ends_with(self.score(history))

    def progress(self) -> dict[str, float]:
        """Return the numbers that the next decision depends on."""
        return self.patience.progress()

    def resume(self, progress: dict[str, float], best_model: Model | None) -> None:
        """Go on from what `progress` gave."""
        self.patience.resume(progress)


@final
class HeldOutScore:
    """Stop when the expected log likelihood of held-out rows no longer rises; the model that had the most is the best.

    Parameters
    ----------
    tol, patience : float, int
        A score must rise by `tol` above the best; after `patience` that do not, the run ends.
    data : Data
        The held-out rows.
    key : key
        Decides the draws, the same every time.
    seen : Data, optional
        The rows that are trained on; an integrated output layer needs them.
    """

    def __init__(self, tol: float, patience: int, data: Data, key: jax.Array, seen: Data | None = None) -> None:
        self.patience, self.num_rows, self.key = Patience(tol, patience), int(data.num_rows), key
        #: How many rows the held-out rows count as.
        self.total_weight = float(np.sum(np.asarray(data.weight)))
        self.batch = Batch(data.x, data.y, data.weight)
        self.seen = None if seen is None else Batch(seen.x, seen.y, seen.weight)
        self.highest = -np.inf
        self.best_model: Model | None = None

    def score(self, model: Model) -> float:
        """Return the expected log likelihood per held-out row."""
        if model.output is None or self.seen is None:
            return float(_expected_log_likelihood(model, self.key, self.batch)) / self.total_weight
        return float(_integrated_log_likelihood(model, self.key, self.batch, self.seen)) / self.total_weight

    def should_stop(self, model: Model, history: History) -> bool:
        """Return whether to stop; the model with the highest score is kept, by however little it is higher."""
        score = self.score(model)
        if score > self.highest:
            self.highest, self.best_model = score, as_numpy(model)
        return self.patience.ends_with(score)

    def progress(self) -> dict[str, float]:
        """Return the numbers that the next decision depends on."""
        return {**self.patience.progress(), "highest": float(self.highest)}

    def resume(self, progress: dict[str, float], best_model: Model | None) -> None:
        """Go on from what `progress` gave, and from the best model so far."""
        self.patience.resume(progress)
        self.highest, self.best_model = progress["highest"], best_model


def hold_out(num_rows: int, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the rows to train on, and of those to hold out, at least one of each."""
    order = np.random.default_rng([seed, 1]).permutation(num_rows)
    held = max(1, round(fraction * num_rows))
    if held >= num_rows:
        raise ValueError(f"early_stopping: {num_rows} rows are too few to hold out {held} of them.")
    return order[held:], order[:held]


def as_numpy(model: Model) -> Model:
    """Return the model with its arrays off the device."""
    return jax.tree.map(lambda leaf: np.asarray(leaf) if is_array(leaf) else leaf, model)


@compiled
def _integrated_log_likelihood(model: Model, key: jax.Array, batch: Batch, seen: Batch) -> jax.Array:
    """Return the expected log likelihood of a batch under the functions' posterior given the rows that were seen."""
    assert model.output is not None
    normals = draw_normals(key, model.sizes(), batch.x.shape[0], HELD_OUT_DRAWS, dtype=batch.x.dtype)

    def one(normals: StandardNormals) -> jax.Array:
        drawn, own = model.with_hypers(normals)
        assert drawn.output is not None
        gp = FunctionGP.of(drawn.weights.prepared().draw(own), drawn.network)
        return drawn.output.score(gp, drawn.likelihood, seen, batch, own.rows)

    return jnp.mean(jax.lax.map(one, normals))


@compiled
def _expected_log_likelihood(model: Model, key: jax.Array, batch: Batch) -> jax.Array:
    normals = draw_normals(key, model.weights.sizes(), batch.x.shape[0], 32, dtype=batch.x.dtype)
    return elbo_terms(model, normals, batch)[0]["log_likelihood"]
