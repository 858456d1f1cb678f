"""Deep ensemble: several plain networks from different starts. Where they disagree, the prediction is uncertain."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import jax
import numpy as np
import optax

from metaprior.baselines.map import MAPMethod, MAPRegressor
from metaprior.baselines.members import MembersMethod, num_members
from metaprior.estimators.base import Classifier, Regressor
from metaprior.estimators.checks import expect_whole
from metaprior.estimators.config import NetworkConfig, TrainingConfig
from metaprior.estimators.documented import documented_like
from metaprior.estimators.method import Problem
from metaprior.estimators.renamed import accepts_old_names
from metaprior.inference import Fit
from metaprior.io.checkpoints import CheckpointConfig
from metaprior.model import Model
from metaprior.networks import Dense
from metaprior.weights import WeightModel


class EnsembleMethod(MembersMethod):
    """Several networks with point weights, each fitted on its own."""

    noise_hold = 0.0

    def __init__(self, member: MAPMethod, n_members: int) -> None:
        """Keep the method of a member, and the number of members."""
        super().__init__(member.network, member.dtype)
        self.member, self.n_members = member, n_members

    def check(self) -> None:
        """Raise an error if a parameter is not as expected."""
        self.member.check()
        expect_whole("n_members", self.n_members, 1)

    def start_noise(self, x: np.ndarray, targets: np.ndarray, hold: float) -> np.ndarray:
        """Return the starting value of a learned noise."""
        return self.member.start_noise(x, targets, hold)

    def initial_weights(self, network: Dense, problem: Problem, rng: np.random.Generator) -> WeightModel:
        """Return the random weights of a member."""
        return self.member.initial_weights(network, problem, rng)

    def fit(self, problem: Problem, seed: int, checkpoint: CheckpointConfig | None = None) -> dict[str, Any]:
        """Train one member after another. All use the same compiled program."""
        seeds = np.random.default_rng(seed).integers(2**31 - 1, size=int(self.n_members))
        fits = []
        for index, own in enumerate(seeds.tolist()):
            last = None if problem.last is None else member_of(problem.last, index)
            job = self.member.job(problem._replace(last=last), own)
            fits.append(self.member.train(job, problem, checkpoint and checkpoint.inside(f"member{index}")))
        return self.member.attributes(_stacked(fits), problem, seed)


def member_of(stacked: Model, index: int) -> Model:
    """Return one member of a stacked model."""
    if index >= num_members(stacked):
        raise ValueError(f"warm_start: expected the n_members of the last fit, {num_members(stacked)}; got more.")
    return jax.tree.map(lambda leaf: leaf[index], stacked)


def _stacked(fits: list[Fit]) -> Fit:
    """Return the members as one stacked model. The history is the mean over members, for the steps that all took."""
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
@documented_like(MAPRegressor)
@dataclass(eq=False, repr=False)
class EnsembleRegressor(Regressor):
    """Regression by an ensemble of networks with point weights.

    Every member has its own start, order of batches, held-out rows and noise level. Predictions mix the members.

    Parameters
    ----------
    n_members : int, default=5
        The number of networks in the ensemble.
    """

    hidden_layer_sizes: Sequence[int] = (50,)
    activation: str | Callable[..., Any] = "tanh"
    _: KW_ONLY
    n_members: int = 5
    prior_scale: float | str = "auto"
    input_scaling: str = "per_column"
    likelihood: str = "gaussian"
    noise: float | Sequence[float] | None = None
    noise_hold: float | None = None
    max_iter: int = 3000
    batch_size: int | str = "auto"
    learning_rate_init: float = 0.003
    optimizer: optax.GradientTransformation | None = None
    early_stopping: bool | str = "auto"
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    tol: float = 0.0
    warm_start: bool = False
    dtype: str = "float32"
    devices: int | str | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: bool | int = False

    def _method(self) -> EnsembleMethod:
        member = MAPMethod(NetworkConfig.of(self), TrainingConfig.of(self), self.prior_scale)
        return EnsembleMethod(member, self.n_members)


@accepts_old_names
@documented_like(EnsembleRegressor)
@dataclass(eq=False, repr=False)
class EnsembleClassifier(Classifier):
    """Classification by an ensemble of networks with point weights; see `EnsembleRegressor`."""

    hidden_layer_sizes: Sequence[int] = (50,)
    activation: str | Callable[..., Any] = "tanh"
    _: KW_ONLY
    n_members: int = 5
    prior_scale: float | str = "auto"
    input_scaling: str = "per_column"
    max_iter: int = 3000
    batch_size: int | str = "auto"
    learning_rate_init: float = 0.003
    optimizer: optax.GradientTransformation | None = None
    early_stopping: bool | str = "auto"
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    tol: float = 0.0
    warm_start: bool = False
    dtype: str = "float32"
    devices: int | str | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: bool | int = False

    def _method(self) -> EnsembleMethod:
        member = MAPMethod(NetworkConfig.of(self), TrainingConfig.of(self), self.prior_scale)
        return EnsembleMethod(member, self.n_members)
