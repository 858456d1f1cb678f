"""BNN-HMC: the posterior of a small network, sampled by NUTS. The only approximation is the finite length of chains.

With `prior="normal"` every weight is N(0, prior_scale^2). This is the gold standard of the usual Bayesian network. With
`prior="metagp"` the sampler runs on the hierarchical model itself (latents, whitened weights, hyper-parameters). This
is the gold standard for the variational posteriors of MetaGP. The noise of a regression is sampled too.
"""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from metaprior.baselines.map import expect_positive
from metaprior.baselines.members import MembersMethod, all_members, num_members
from metaprior.compilation import compiled
from metaprior.estimators.base import Classifier, Regressor
from metaprior.estimators.checks import expect, expect_one_of, expect_whole, is_number
from metaprior.estimators.config import DTYPES, Config, NetworkConfig
from metaprior.estimators.documented import documented_like
from metaprior.estimators.metagp import MetaGPRegressor
from metaprior.estimators.method import Problem
from metaprior.estimators.progress import progress_bar
from metaprior.estimators.renamed import accepts_old_names
from metaprior.estimators.stopping import as_numpy
from metaprior.inference import Recipe, make_data, report_jitter, train
from metaprior.inference.nuts import Samples, Settings, effective_sample_size, require_numpyro, sample, split_rhat
from metaprior.io.checkpoints import Checkpoint, CheckpointConfig
from metaprior.kernels import RBF, Kernel, named
from metaprior.model import Model
from metaprior.networks import Dense
from metaprior.random import make_key
from metaprior.user_warnings import warn_user
from metaprior.weights import HierarchicalMetaGP, Point, WeightModel

#: The optimisation before a chain starts. From a random start, a chain would spend its warm-up on the way uphill.
UPHILL = Recipe(num_steps=500, learning_rate=0.01, kl_starts=-1.0, kl_full=0.0)
#: A fit warns if R-hat is above, or the effective sample size below, these values.
POOR_RHAT, POOR_ESS = 1.05, 100
PRIORS = ("normal", "metagp")


class PoorMixing(UserWarning):
    """The chains do not agree, or have too small an effective sample size."""


@compiled
def jitter_of_each(stacked: WeightModel) -> Array:
    """Return the relative jitter that the factors of every sample need. Each costs as much as `prepared`."""
    return jax.lax.map(lambda weights: weights.prepared().jitter, stacked)


@dataclass(frozen=True)
class HMCConfig(Config):
    """The parameters of the prior and of the sampler."""

    prior: str
    prior_scale: float
    latent_dim: int
    weight_kernel: Kernel | str | None
    input_kernel: Kernel | str | None
    n_warmup: int
    n_samples: int
    n_chains: int
    target_accept: float
    max_tree_depth: int
    n_predict_draws: int
    dtype: str
    verbose: bool | int

    def settings(self) -> Settings:
        """Return the settings of the sampler."""
        return Settings(int(self.n_warmup), int(self.n_samples), float(self.target_accept), int(self.max_tree_depth))

    def check(self) -> None:
        """Raise an error if a parameter is not as expected."""
        lowest = {"latent_dim": 1, "n_warmup": 1, "n_samples": 1, "n_chains": 1, "max_tree_depth": 1}
        for name, least in {**lowest, "n_predict_draws": 2}.items():
            expect_whole(name, vars(self)[name], least)
        expect_one_of("prior", self.prior, PRIORS)
        expect_positive("prior_scale", self.prior_scale)
        accept = self.target_accept
        expect("target_accept", accept, "a number between 0 and 1", is_number(accept) and 0 < accept < 1)
        expect("dtype", self.dtype, " or ".join(f"'{name}'" for name in DTYPES), self.dtype in DTYPES)


class HMCMethod(MembersMethod):
    """The posterior of a network by NUTS."""

    def __init__(self, config: HMCConfig, network: NetworkConfig) -> None:
        """Keep the parameters."""
        super().__init__(network, config.dtype)
        self.config = config

    def check(self) -> None:
        """Raise an error if a parameter is not as expected."""
        self.network.check()
        self.config.check()

    def initial_weights(self, network: Dense, problem: Problem, rng: np.random.Generator) -> WeightModel:
        """Return random weights, or a random state of the hierarchical model."""
        config = self.config
        if config.prior == "normal":
            return Point.initial(network, rng, float(config.prior_scale))
        weight_kernel = RBF() if config.weight_kernel is None else named(config.weight_kernel, "weight_kernel")
        input_kernel = None
        if config.input_kernel is not None:
            input_kernel = named(config.input_kernel, "input_kernel").with_columns(problem.names)
            if input_kernel.unknown_periods():
                raise ValueError("input_kernel: expected a period, because the sampler needs a value to start from.")
            input_kernel = input_kernel.bound_to(problem.x.shape[1]).standardised(problem.x_scale)
        latent_dim = int(config.latent_dim)
        return HierarchicalMetaGP.initial(network, latent_dim, weight_kernel, input_kernel, problem.x_unit, rng)

    def fit(self, problem: Problem, seed: int, checkpoint: CheckpointConfig | None = None) -> dict[str, Any]:
        """Sample. Every chain starts from its own random point, after a short optimisation."""
        require_numpyro()
        seeds = np.random.default_rng(seed).integers(2**31 - 1, size=int(self.config.n_chains)).tolist()
        settings = self.config.settings()
        with self.computing():
            data = make_data(problem.x_unit, problem.targets, problem.weight, np.dtype(self.dtype).type)
            starts = []
            for index, own in enumerate(seeds):
                store = checkpoint and Checkpoint(checkpoint.inside(f"start{index}"))
                model = self.initial_model(problem, own)
                starts.append(train(model, data, make_key(own), recipe=UPHILL, checkpoint_store=store).model)
            store = checkpoint and Checkpoint(checkpoint)
            with progress_bar(self.config.verbose) as listener:
                samples = sample(starts, data, make_key(seed), settings, listener, store)
        return self._attributes(samples, seed, problem.x_unit)

    def _attributes(self, samples: Samples, seed: int, x_unit: np.ndarray) -> dict[str, Any]:
        """Return the fitted attributes: states evenly spaced over all chains, and diagnostics of the chains."""
        chains, length = samples.log_joint.shape
        flat = jax.tree.map(lambda leaf: leaf.reshape(chains * length, *leaf.shape[2:]), samples.model)
        key = np.array([seed, 0], np.uint32)
        rhat, ess = diagnosed(flat, key, x_unit, chains)
        _warn_of_poor_mixing(rhat, ess, samples.num_divergences)
        with self.computing():
            report_jitter(flat.weights, float(np.max(jitter_of_each(flat.weights))))
        most = min(int(self.config.n_predict_draws), chains * length)
        chosen = np.linspace(0, chains * length - 1, most).round().astype(int)
        return {
            "model_": as_numpy(jax.tree.map(lambda leaf: leaf[chosen], flat)),
            "draw_key_": key,
            "n_iter_": int(self.config.n_warmup) + length,
            "log_joint_history_": samples.log_joint,
            "n_divergences_": samples.num_divergences,
            "rhat_": rhat,
            "ess_": ess,
        }


def diagnosed(flat: Model, key: np.ndarray, x_unit: np.ndarray, chains: int) -> tuple[float, float]:
    """Return the largest R-hat and the least effective sample size of the function at up to 50 rows of the data.

    Chains are judged by the function f and not by its weights, because weights have symmetries and f has none.
    """
    rows = x_unit[np.linspace(0, len(x_unit) - 1, min(50, len(x_unit))).round().astype(int)]
    f = np.concatenate([part for _, part in all_members(flat, key, rows).chunks()], axis=1)
    f = f.reshape(chains, num_members(flat) // chains, -1)
    if f.shape[1] < 4 or not np.all(f.std(axis=(0, 1)) > 0):
        return np.nan, np.nan
    return float(split_rhat(f).max()), float(effective_sample_size(f).min())


def _warn_of_poor_mixing(rhat: float, ess: float, num_divergences: int) -> None:
    if rhat <= POOR_RHAT and ess >= POOR_ESS:
        return
    warn_user(
        f"the chains mix poorly: R-hat {rhat:.3f} (good: at most {POOR_RHAT}), effective sample size {ess:.0f} (good: "
        f"at least {POOR_ESS}), {num_divergences} divergent transitions; raise n_warmup and n_samples, or, if "
        "transitions diverge, target_accept.",
        PoorMixing,
        once="mixing",
    )


@accepts_old_names
@documented_like(MetaGPRegressor)
@dataclass(eq=False, repr=False)
class HMCRegressor(Regressor):
    """Regression by a network whose posterior is sampled by NUTS; needs the extra `hmc`.

    Parameters
    ----------
    prior : {"normal", "metagp"}, default="normal"
        Independent normal weights, or the hierarchical Gaussian-process prior of MetaGP. The cost of the latter grows
        with the cube of the number of weights, so it is for small networks.
    prior_scale : float, default=1.0
        The standard deviation of a weight under the normal prior.
    latent_dim, weight_kernel, input_kernel :
        Parameters of the hierarchical prior, as for `metaprior.MetaGPRegressor`.
    n_warmup, n_samples, n_chains : int, default=500, 500 and 4
        The number of transitions of a chain before and after its step size and metric are fixed, and the number of
        chains.
    target_accept : float, default=0.8
        The mean acceptance that the step size is tuned for.
    max_tree_depth : int, default=10
        The largest number of doublings of a trajectory.
    n_predict_draws : int, default=400
        The number of states, evenly spaced over all chains, that predictions mix.

    noise_hold : float, default=None
        Has no effect: the noise is sampled.
    dtype : {"float32", "float64"}, default="float64"
        The type that sampling computes in.

    Attributes
    ----------
    rhat_, ess_ : float
        The largest split R-hat and the smallest effective sample size of the function at the data.
    n_divergences_ : int
    log_joint_history_ : ndarray of shape (n_chains, n_samples)
    """

    hidden_layer_sizes: Sequence[int] = (50,)
    activation: str | Callable[..., Any] = "tanh"
    _: KW_ONLY
    prior: str = "normal"
    prior_scale: float = 1.0
    latent_dim: int = 2
    weight_kernel: Kernel | str | None = None
    input_kernel: Kernel | str | None = None
    input_scaling: str = "per_column"
    likelihood: str = "gaussian"
    noise: float | Sequence[float] | None = None
    noise_hold: float | None = None
    n_warmup: int = 500
    n_samples: int = 500
    n_chains: int = 4
    target_accept: float = 0.8
    max_tree_depth: int = 10
    n_predict_draws: int = 400
    dtype: str = "float64"
    random_state: int | np.random.RandomState | None = None
    verbose: bool | int = False

    def _method(self) -> HMCMethod:
        return HMCMethod(HMCConfig.of(self), NetworkConfig.of(self))


@accepts_old_names
@documented_like(HMCRegressor)
@dataclass(eq=False, repr=False)
class HMCClassifier(Classifier):
    """Classification by a network whose posterior is sampled by NUTS; see `HMCRegressor`."""

    hidden_layer_sizes: Sequence[int] = (50,)
    activation: str | Callable[..., Any] = "tanh"
    _: KW_ONLY
    prior: str = "normal"
    prior_scale: float = 1.0
    latent_dim: int = 2
    weight_kernel: Kernel | str | None = None
    input_kernel: Kernel | str | None = None
    input_scaling: str = "per_column"
    n_warmup: int = 500
    n_samples: int = 500
    n_chains: int = 4
    target_accept: float = 0.8
    max_tree_depth: int = 10
    n_predict_draws: int = 400
    dtype: str = "float64"
    random_state: int | np.random.RandomState | None = None
    verbose: bool | int = False

    def _method(self) -> HMCMethod:
        return HMCMethod(HMCConfig.of(self), NetworkConfig.of(self))
