"""What an ensemble and a sampler share: many models in one, along a leading axis; predictions mix them all."""

import jax
import numpy as np

from metaprior.estimators.base import NetworkEstimator
from metaprior.predictive.draws import FunctionDraws, NetworkDraws


class MembersEstimator(NetworkEstimator):
    """A network estimator whose `model_` is a stack of models."""

    def _n_predict_draws(self) -> int:
        return len(jax.tree.leaves(self.model_)[0])

    def _function_draws(self, X: np.ndarray, num_draws: int, key: np.ndarray, *, joint: bool = False) -> FunctionDraws:
        """Return every member, or, where draws are asked for, members chosen at random."""
        model = self.model_
        if joint:
            chosen = np.random.default_rng(key).integers(self._n_predict_draws(), size=num_draws)
            model = jax.tree.map(lambda leaf: leaf[chosen], model)
        return NetworkDraws(model, key, num_draws, self._in_units(X), joint=joint, stacked=True)
