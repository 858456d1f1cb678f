"""When a run may end early: a flat ELBO, or a held-out score that no longer rises.

Asked after every block of steps, and only once the recipe has let everything in: before that the ELBO moves because the
recipe does. A held-out score also says which model is the best so far, and the run ends with that one.
"""

import jax
import jax.numpy as jnp
import numpy as np

from metaprior.compilation import compiled
from metaprior.inference import Batch, Data
from metaprior.inference.elbo import elbo_terms
from metaprior.inference.steps import STEP_BLOCK
from metaprior.model import Model
from metaprior.output_layer import FunctionGP
from metaprior.random import StandardNormals, draw_normals

#: Draws of the layers below an integrated output layer that a held-out score is the mean of.
HELD_OUT_DRAWS = 4


class FlatElbo:
    """Stop when the mean ELBO of a block of steps has not risen by `tol` nats a datum for `patience` blocks."""

    #: The model that the run ends with; None: its last.
    kept: Model | None = None

    def __init__(self, tol: float, patience: int, num_rows: int) -> None:
        """Keep the threshold."""
        self.tol, self.patience, self.num_rows = tol, patience, num_rows
        self.best, self.waited = -np.inf, 0

    def score(self, model: Model, history: dict[str, np.ndarray]) -> float:
        """Return the mean ELBO of the last block of steps, a datum."""
        return float(np.mean(history["elbo"][-STEP_BLOCK:])) / self.num_rows

    def __call__(self, model: Model, history: dict[str, np.ndarray]) -> bool:
        """Return whether to stop."""
        score = self.score(model, history)
        self.keep(model, score)
        if score > self.best + self.tol:
            self.best, self.waited = score, 0
        else:
            self.waited += 1
        return self.waited >= self.patience

    def keep(self, model: Model, score: float) -> None:
        """Keep nothing: the last ELBO is as good as any."""

    def progress(self) -> dict[str, float]:
        """Return what the next look depends on."""
        return {"best": float(self.best), "waited": self.waited}

    def resume(self, progress: dict[str, float], kept: Model | None = None) -> None:
        """Go on from what `progress` gave, and from the model that was kept."""
        self.kept = kept
        self.best, self.waited = progress["best"], int(progress["waited"])


class HeldOutScore(FlatElbo):
    """Stop when the expected log likelihood of a held-out part no longer rises; keep the model that had the most."""

    def __init__(self, tol: float, patience: int, data: Data, key: jax.Array, seen: Data | None = None) -> None:
        """Keep the held-out rows, those that are trained on, and the noise's key: the same draws every time."""
        super().__init__(tol, patience, int(data.num_rows))
        self.batch, self.key = Batch(data.x, data.y, data.weight), key
        self.seen = None if seen is None else Batch(seen.x, seen.y, seen.weight)
        self.highest = -np.inf

    def score(self, model: Model, history: dict[str, np.ndarray]) -> float:
        """Return the expected log likelihood a held-out row."""
        if model.output is None or self.seen is None:
            return float(_expected_log_likelihood(model, self.key, self.batch)) / self.num_rows
        return float(_integrated_log_likelihood(model, self.key, self.batch, self.seen)) / self.num_rows

    def keep(self, model: Model, score: float) -> None:
        """Keep the model with the highest score, by however little it is higher."""
        if score > self.highest:
            self.highest, self.kept = score, as_numpy(model)

    def progress(self) -> dict[str, float]:
        """Return what the next look depends on."""
        return {**super().progress(), "highest": float(self.highest)}

    def resume(self, progress: dict[str, float], kept: Model | None = None) -> None:
        """Go on from what `progress` gave, and from the model that was kept."""
        super().resume(progress, kept)
        self.highest = progress["highest"]


def hold_out(num_rows: int, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the rows to train on, and of those to hold out, at least one of each."""
    order = np.random.default_rng([seed, 1]).permutation(num_rows)
    held = max(1, round(fraction * num_rows))
    if held >= num_rows:
        raise ValueError(f"early_stopping: {num_rows} rows are too few to hold out {held} of them.")
    return order[held:], order[:held]


def as_numpy(model: Model) -> Model:
    """Return the model with its arrays off the device."""
    return jax.tree.map(lambda leaf: np.asarray(leaf) if hasattr(leaf, "dtype") else leaf, model)


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
