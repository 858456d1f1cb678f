"""When a run may end early: a flat ELBO, or a held-out score that no longer rises.

Asked after every stretch, and only once the recipe has let everything in: before that the ELBO moves because the
recipe does.
"""

import equinox as eqx
import jax
import numpy as np

from metaprior.inference import Batch, Data
from metaprior.inference.elbo import elbo_terms
from metaprior.inference.steps import STRETCH
from metaprior.model import Model
from metaprior.noise import sample_noise


class FlatElbo:
    """Stop when the mean ELBO of a stretch has not risen by `tol` nats a datum for `patience` stretches."""

    def __init__(self, tol: float, patience: int, num_rows: int) -> None:
        """Keep the threshold."""
        self.tol, self.patience, self.num_rows = tol, patience, num_rows
        self.best, self.waited = -np.inf, 0

    def score(self, model: Model, history: dict[str, np.ndarray]) -> float:
        """Return the mean ELBO of the last stretch, a datum."""
        return float(np.mean(history["elbo"][-STRETCH:])) / self.num_rows

    def __call__(self, model: Model, history: dict[str, np.ndarray]) -> bool:
        """Return whether to stop."""
        score = self.score(model, history)
        if score > self.best + self.tol:
            self.best, self.waited = score, 0
        else:
            self.waited += 1
        return self.waited >= self.patience

    def progress(self) -> dict[str, float]:
        """Return what the next look depends on."""
        return {"best": float(self.best), "waited": self.waited}

    def resume(self, progress: dict[str, float]) -> None:
        """Go on from what `progress` gave."""
        self.best, self.waited = progress["best"], int(progress["waited"])


class HeldOutScore(FlatElbo):
    """Stop when the expected log likelihood of a held-out part no longer rises."""

    def __init__(self, tol: float, patience: int, data: Data, key: jax.Array) -> None:
        """Keep the held-out rows and the noise's key: the same draws every time."""
        super().__init__(tol, patience, int(data.num_rows))
        self.batch, self.key = Batch(data.x, data.y, data.weight), key

    def score(self, model: Model, history: dict[str, np.ndarray]) -> float:
        """Return the expected log likelihood a held-out row."""
        return float(_expected_log_likelihood(model, self.key, self.batch)) / self.num_rows


@eqx.filter_jit
def _expected_log_likelihood(model: Model, key: jax.Array, batch: Batch) -> jax.Array:
    noise = sample_noise(key, model.weights.sizes(), batch.x.shape[0], 32, dtype=batch.x.dtype)
    return elbo_terms(model, noise, batch)[0]["log_likelihood"]
