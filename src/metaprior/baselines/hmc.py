"""BNN-HMC: the posterior of a network by NUTS, no approximation but the chains' length. Small networks only.

With `prior="normal"` every weight is N(0, prior_scale^2): the gold standard of the usual Bayesian network. With
`prior="metagp"` the sampler runs on the hierarchical model itself (latents, whitened weights, hyper-parameters): the
gold standard that the variational posteriors of MetaGP are held against. The noise of a regression is sampled too.
"""

import warnings
from dataclasses import KW_ONLY, dataclass

import jax
import numpy as np
from jaxtyping import Array

from metaprior.baselines.members import MembersEstimator
from metaprior.compilation import compiled
from metaprior.estimators.base import Problem, as_numpy
from metaprior.estimators.checks import expect, is_number
from metaprior.estimators.classifier import ClassifierPart
from metaprior.estimators.progress import progress_bar
from metaprior.estimators.regressor import RegressorPart
from metaprior.estimators.renamed import accepts_old_names
from metaprior.inference import Recipe, make_data, report_jitter, train
from metaprior.inference.nuts import Samples, Settings, effective_sample_size, require_numpyro, sample, split_rhat
from metaprior.io.checkpoints import Checkpoint, CheckpointConfig, digest_of
from metaprior.kernels import RBF, Kernel, named
from metaprior.likelihoods import Likelihood
from metaprior.model import Model
from metaprior.networks import Dense
from metaprior.predictive.draws import NetworkDraws
from metaprior.random import make_key
from metaprior.weights import HierarchicalMetaGP, Point, WeightModel

#: Steps of the optimiser before a chain begins: a chain from a random start spends its warm-up on the way.
START_STEPS = 500
#: R-hat above and effective sample size below which a fit is warned about.
POOR_RHAT, POOR_ESS = 1.05, 100
PRIORS = ("normal", "metagp")


class PoorMixing(UserWarning):
    """The chains do not agree, or are worth too few independent draws."""


@compiled
def jitter_of_each(stacked: WeightModel) -> Array:
    """Return the relative jitter that the factors of every sample take. Cost of one: that of `prepared`."""
    return jax.lax.map(lambda weights: weights.prepared().jitter, stacked)


@dataclass(eq=False, repr=False)
class HMCEstimator(MembersEstimator):
    """The machinery of both estimators; see `HMCRegressor`."""

    _: KW_ONLY
    prior: str = "normal"
    prior_scale: float = 1.0
    latent_dim: int = 2
    weight_kernel: Kernel | str | None = None
    input_kernel: Kernel | str | None = None
    n_warmup: int = 500
    n_samples: int = 500
    n_chains: int = 4
    target_accept: float = 0.8
    max_tree_depth: int = 10
    n_predict_draws: int = 400
    dtype: str = "float64"

    def _initial_weights(self, network: Dense, problem: Problem, rng: np.random.Generator) -> WeightModel:
        if self.prior == "normal":
            return Point.initial(network, rng, float(self.prior_scale))
        weight_kernel = RBF() if self.weight_kernel is None else named(self.weight_kernel, "weight_kernel")
        input_kernel = None
        if self.input_kernel is not None:
            input_kernel = named(self.input_kernel, "input_kernel")
            if input_kernel.unknown_periods():
                raise ValueError("input_kernel: give the period; a sampler needs a place to start from.")
            input_kernel = input_kernel.bound_to(problem.x.shape[1]).standardised(self.x_scale_)
        latent_dim = int(self.latent_dim)
        return HierarchicalMetaGP.initial(network, latent_dim, weight_kernel, input_kernel, problem.x_unit, rng)

    def _fit(
        self,
        x: np.ndarray,
        targets: np.ndarray,
        likelihood: Likelihood,
        num_functions: int,
        place: CheckpointConfig | None = None,
    ) -> None:
        """Sample: every chain from its own random start, moved uphill a little."""
        require_numpyro()
        seed, problem = self._begun(x, targets, likelihood, num_functions)
        seeds = np.random.default_rng(seed).integers(2**31 - 1, size=int(self.n_chains)).tolist()
        settings = Settings(
            int(self.n_warmup), int(self.n_samples), float(self.target_accept), int(self.max_tree_depth)
        )
        with self._computing():
            data = make_data(problem.x_unit, targets, dtype=np.dtype(self.dtype).type)
            recipe = Recipe(num_steps=START_STEPS, learning_rate=0.01, kl_starts=-1.0, kl_full=0.0)
            models = [self._started(problem, own) for own in seeds]
            checkpoint_store = None if place is None else Checkpoint(place, digest_of(models, data, settings, (), seed))
            starts = [
                train(model, data, make_key(own), recipe=recipe).model for model, own in zip(models, seeds, strict=True)
            ]
            with progress_bar(self.verbose) as listener:
                samples = sample(starts, data, make_key(seed), settings, listener, checkpoint_store)
        self._keep_samples(samples, seed, problem.x_unit)

    def _keep_samples(self, samples: Samples, seed: int, x_unit: np.ndarray) -> None:
        chains, length = samples.log_joint.shape
        flat = jax.tree.map(lambda leaf: leaf.reshape(chains * length, *leaf.shape[2:]), samples.model)
        self.log_joint_history_ = samples.log_joint
        self.n_divergences_ = samples.num_divergences
        self.n_iter_ = int(self.n_warmup) + length
        self.draw_key_ = np.array([seed, 0], np.uint32)
        self._diagnose(flat, x_unit, chains)
        with self._computing():
            report_jitter(flat.weights, float(np.max(jitter_of_each(flat.weights))))
        # evenly spaced over all chains: what predictions mix
        chosen = np.linspace(0, chains * length - 1, min(int(self.n_predict_draws), chains * length)).round()
        self.model_ = as_numpy(jax.tree.map(lambda leaf: leaf[chosen.astype(int)], flat))

    def _diagnose(self, flat: Model, x_unit: np.ndarray, chains: int) -> None:
        """Judge the chains by the function they draw at (some of) the data: weights have symmetries, f has none."""
        rows = x_unit[np.linspace(0, len(x_unit) - 1, min(50, len(x_unit))).round().astype(int)]
        total = len(np.asarray(jax.tree.leaves(flat)[0]))
        draws = NetworkDraws(flat, self.draw_key_, total, rows, stacked=True)
        f = np.concatenate([part for _, part in draws.chunks()], axis=1)
        f = f.reshape(chains, total // chains, -1)
        if f.shape[1] < 4 or not np.all(f.std(axis=(0, 1)) > 0):
            self.rhat_, self.ess_ = np.nan, np.nan
        else:
            self.rhat_, self.ess_ = float(split_rhat(f).max()), float(effective_sample_size(f).min())
        if not (self.rhat_ <= POOR_RHAT and self.ess_ >= POOR_ESS):
            warnings.warn(
                f"the chains mix poorly: R-hat {self.rhat_:.3f} (good: at most {POOR_RHAT}), effective sample size "
                f"{self.ess_:.0f} (good: at least {POOR_ESS}), {self.n_divergences_} divergent transitions; raise "
                "n_warmup and n_samples, or target_accept where transitions diverge.",
                PoorMixing,
                stacklevel=5,
            )

    def _whole_numbers(self) -> list[tuple[str, int]]:
        lowest = {"n_warmup": 1, "n_samples": 1, "n_chains": 1, "max_tree_depth": 1, "n_predict_draws": 2}
        return [*super()._whole_numbers(), ("latent_dim", 1), *lowest.items()]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        expect("prior", self.prior, f"one of {PRIORS}", isinstance(self.prior, str) and self.prior in PRIORS)
        scale, accept = self.prior_scale, self.target_accept
        expect("prior_scale", scale, "a positive number", is_number(scale) and scale > 0)
        expect("target_accept", accept, "a number between 0 and 1", is_number(accept) and 0 < accept < 1)


@accepts_old_names
@dataclass(eq=False, repr=False)
class HMCRegressor(RegressorPart, HMCEstimator):
    """Regression by a network whose posterior is sampled by NUTS; needs `pip install "metaprior[hmc]"`.

    Parameters that are not named here are those of `metaprior.MetaGPRegressor`.

    Parameters
    ----------
    prior : {"normal", "metagp"}, default="normal"
        Independent normal weights, or the hierarchical Gaussian-process prior of MetaGP (for small networks: its
        cost grows with the cube of the number of weights).
    prior_scale : float, default=1.0
        Standard deviation of a weight under the normal prior.
    latent_dim, weight_kernel, input_kernel :
        Of the hierarchical prior, as for `metaprior.MetaGPRegressor`.
    n_warmup, n_samples, n_chains : int, default=500, 500 and 4
        Transitions of a chain before and after its step size and metric are fixed, and chains.
    target_accept : float, default=0.8
    max_tree_depth : int, default=10
    n_predict_draws : int, default=400
        States, evenly spaced over all chains, that predictions mix.

    Attributes
    ----------
    rhat_, ess_ : float
        The largest split R-hat and the smallest effective sample size of the function at the data.
    n_divergences_ : int
    log_joint_history_ : ndarray of shape (n_chains, n_samples)
    """


@accepts_old_names
@dataclass(eq=False, repr=False)
class HMCClassifier(ClassifierPart, HMCEstimator):
    """Classification by a network whose posterior is sampled by NUTS; see `HMCRegressor`."""
