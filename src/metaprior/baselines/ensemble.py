"""Deep ensemble: several plain networks from different starts; where they disagree, the data do not decide."""

from dataclasses import KW_ONLY, dataclass

import jax
import numpy as np

from metaprior.baselines.map import MAPEstimator, PointRegressorPart
from metaprior.baselines.members import MembersEstimator
from metaprior.estimators.classifier import ClassifierPart
from metaprior.estimators.renamed import accepts_old_names
from metaprior.inference import Fit
from metaprior.io.checkpoints import CheckpointConfig
from metaprior.likelihoods import Likelihood
from metaprior.model import Model


@dataclass(eq=False, repr=False)
class EnsembleEstimator(MembersEstimator, MAPEstimator):
    """The machinery of both estimators; see `EnsembleRegressor`."""

    _: KW_ONLY
    n_members: int = 5

    @property
    def _is_one_run(self) -> bool:
        return False

    def _fit(
        self,
        x: np.ndarray,
        targets: np.ndarray,
        likelihood: Likelihood,
        num_functions: int,
        place: CheckpointConfig | None = None,
    ) -> None:
        """Train one member after another: one compiled program serves them all."""
        seed, problem = self._begun(x, targets, likelihood, num_functions)
        seeds = np.random.default_rng(seed).integers(2**31 - 1, size=int(self.n_members))
        fits = []
        for index, own in enumerate(seeds.tolist()):
            model = self._member(index) if self._going_on() else self._started(problem, own)
            fits.append(self._trained(model, problem, own, place and place.inside(f"member{index}")))
        self._keep(_together(fits), seed)

    def _member(self, index: int) -> Model:
        if index >= self._n_predict_draws():
            raise ValueError("warm_start: expected the n_members of the last fit; got more.")
        return jax.tree.map(lambda leaf: leaf[index], self.model_)

    def _whole_numbers(self) -> list[tuple[str, int]]:
        return [*super()._whole_numbers(), ("n_members", 1)]


def _together(fits: list[Fit]) -> Fit:
    """Return the members as one stacked model, the history averaged over the steps that all took."""
    shared = min(fit.num_steps for fit in fits)
    history = {name: np.mean([fit.history[name][:shared] for fit in fits], axis=0) for name in fits[0].history}
    return Fit(
        jax.tree.map(lambda *leaves: np.stack(leaves), *[fit.model for fit in fits]),
        history,
        max(fit.num_steps for fit in fits),
        sum(fit.roll_backs for fit in fits),
        max(fit.jitter for fit in fits),
        all(fit.converged for fit in fits),
    )


@accepts_old_names
@dataclass(eq=False, repr=False)
class EnsembleRegressor(PointRegressorPart, EnsembleEstimator):
    """Regression by an ensemble of networks with point weights.

    Every member has its own start, its own order of batches, its own held-out rows and its own noise level; predictions
    mix the members. Parameters that are not named here are those of `MAPRegressor` and `metaprior.MetaGPRegressor`.

    Parameters
    ----------
    n_members : int, default=5
        Networks in the ensemble.
    """


@accepts_old_names
@dataclass(eq=False, repr=False)
class EnsembleClassifier(ClassifierPart, EnsembleEstimator):
    """Classification by an ensemble of networks with point weights; see `EnsembleRegressor`."""
