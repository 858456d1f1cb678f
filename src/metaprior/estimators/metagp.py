"""The estimators of MetaGP: networks with a Gaussian-process weight prior behind scikit-learn's words."""

import dataclasses
import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from metaprior import kernels
from metaprior.estimators.base import NUM_TRAIN_DRAWS, Problem, VariationalEstimator, expect_auto_or_whole
from metaprior.estimators.checks import expect, is_whole
from metaprior.estimators.classifier import ClassifierPart
from metaprior.estimators.data_kernel import START_LENGTHSCALE, input_kernel_for
from metaprior.estimators.phases import COARSE_FROM, COARSE_ROWS, Phase, coarse_to_fine
from metaprior.estimators.regime import REGIMES, chosen_regime, initial_output
from metaprior.estimators.regressor import RegressorPart
from metaprior.estimators.renamed import accepts_old_names
from metaprior.estimators.together import trained_together
from metaprior.hypers import HyperPosterior
from metaprior.inference import ALL_AT_ONCE, Batch, Data, Fit, Recipe, Settling, StepConfig
from metaprior.inputs import Projection
from metaprior.io.checkpoints import CheckpointConfig
from metaprior.kernels import Kernel
from metaprior.likelihoods import Likelihood
from metaprior.model import Model, release_times
from metaprior.networks import Dense, WeightLayer
from metaprior.output_layer import Exact
from metaprior.predictive.draws import FunctionDraws
from metaprior.predictive.integrated import FUNCTIONS_PER_DRAW, IntegratedDraws
from metaprior.weight_gp import FITC, Anchored, Conditional, Diag, conditional_named
from metaprior.weights import MetaGP, MetaGPSpec, WeightModel, initial_metagp, initial_mixed, metagp_of
from metaprior.weights.start import layer_groups

#: Relative jitter of the factorisations.
JITTER = {"float32": 1e-4, "float64": 1e-6}
#: The longest lengthscale of the usual kernel on the output unit's latent (whose prior has spread 1). Classes that the
#: prior ties together share their wins far from the data, and a class between two others hardly ever wins there: with
#: no bound the entropy on the far ring of the four-class data falls to 0.93 log 4 and less, with it stays above 0.95.
LONGEST_OUTPUT_LENGTHSCALE = 1.5
#: The part of training for which the noise is held where an input kernel carries the signal. Such a model finds it
#: early, and noise that is let in late is not learned in full: with the usual 0.8 in place of 0.5 the negative log
#: density of noisy data (a sine in noise of its own size, the diabetes table) is 0.7 nats worse, and no better for
#: clean data.
LOCAL_NOISE_HOLD = 0.5
#: Rows up to which hyper-parameters have a posterior and are no point estimates: with Gaussian noise, and with other
#: likelihoods, whose rows say less. On 100 rows of four classes a point estimate takes one column for irrelevant, and
#: the entropy on a far ring is 0.949 of its maximum; with a posterior it is 0.999.
FEW_ROWS, FEW_LABELS = 50, 500
#: Inducing codes of a GP, where the user names no number.
NUM_INDUCING = 50
#: Adam's step size, and the one where the output layer is integrated and a step sees all rows. On tables that no
#: report scores (Friedman 1 to 3, diabetes) 0.1 reaches the bound of 0.02 in half the steps, or a higher one.
RATE, FULL_RATE = 0.02, 0.1
#: Noise at the start where the output layer is integrated: nothing need be held, so the start is merely sensible.
INTEGRATED_START_NOISE = 0.3


@dataclass(eq=False, repr=False)
class MetaGPEstimator(VariationalEstimator):
    """The parameters and the machinery of both estimators; see `MetaGPRegressor`."""

    _: KW_ONLY
    latent_dim: int = 2
    n_inducing: int | str = "auto"
    weight_kernel: Kernel | str | tuple | None = None
    input_kernel: Kernel | str | None = None
    weight_gp: str = "auto"
    conditional: str | Conditional = "pathwise"
    input_projection: int | Projection | None = None
    local_layers: Sequence[int] | None = None
    mean_field_layers: Sequence[int] | None = None
    residual_layers: Sequence[int] | str | None = None
    heteroscedastic_weights: bool = False
    n_weight_draws: int = 1
    n_restarts: int = 0
    output_layer: str = "auto"
    n_inducing_rows: int | str = "auto"
    uncertain_hypers: bool | str = "auto"
    n_train_draws: int | str = "auto"  # type: ignore[assignment]
    learning_rate_init: float | str = "auto"  # type: ignore[assignment]
    dtype: str = "auto"

    @property
    def _is_integrated(self) -> bool:
        """Whether the output layer is integrated, or every weight drawn as in the paper."""
        if self.output_layer != "auto":
            return self.output_layer != "drawn"
        by_row = isinstance(conditional_named(self.conditional), Diag | FITC)
        return not by_row and self.residual_layers is None and not self._last_is_mean_field()

    def _last_is_mean_field(self) -> bool:
        if self.mean_field_layers is None:
            return False
        num_layers = len(np.atleast_1d(np.asarray(self.hidden_layer_sizes, dtype=int))) + 1
        return num_layers - 1 in (self._layers_named("mean_field_layers", self.mean_field_layers, num_layers) or ())

    def _started(self, problem: Problem, seed: int) -> Model:
        model = super()._started(problem, seed)
        if not self._is_integrated:
            return model
        regime = self._regime(len(problem.x), problem.num_functions)
        rng = np.random.default_rng([seed, 2])
        separable = metagp_of(model.weights).has_separable_output
        output = initial_output(regime, problem, self.n_inducing_rows, JITTER[self._float_type], rng, separable)
        model = dataclasses.replace(model, output=output)
        if not self._has_uncertain_hypers(len(problem.x)):
            return model
        return dataclasses.replace(model, hypers=HyperPosterior.initial(model, release_times(model)))

    def _has_uncertain_hypers(self, num_rows: int) -> bool:
        if self.uncertain_hypers == "auto":
            return num_rows <= (FEW_ROWS if self._has_gaussian_noise else FEW_LABELS)
        return bool(self.uncertain_hypers)

    def _with_rows(self, fit: Fit, data: Data) -> Fit:
        if fit.model.output is None:
            return fit
        output = fit.model.output.with_rows(Batch(data.x, data.y, data.weight))
        return fit._replace(model=dataclasses.replace(fit.model, output=output))

    def _phases(self, model: Model, problem: Problem, seed: int) -> list[Phase]:
        usual = super()._phases(model, problem, seed)
        # a model that has its rows goes on from a fit; what ends a run by other rules is one run
        fresh = isinstance(model.output, Exact) and model.output.rows is None and self.optimizer is None
        if not fresh or len(problem.x) < COARSE_FROM or usual[0].settling is None:
            return usual
        rng = np.random.default_rng([seed, 2])
        coarse = initial_output("inducing_rows", problem, COARSE_ROWS, JITTER[self._float_type], rng, separable=False)
        return coarse_to_fine(usual[0], coarse, Exact())

    def _settling(self, num_rows: int) -> Settling | None:
        if not self._is_integrated or self.tol > 0 or self.early_stopping:
            return None
        usual, batch = Settling(), self._batch_size(num_rows)
        # in batches the bound is noisy: a look at it is a pass through the rows, or more
        return usual if batch is None else usual._replace(window=max(usual.window, -(-num_rows // batch)))

    def _recipe(self, num_rows: int) -> Recipe:
        recipe = super()._recipe(num_rows)
        return recipe._replace(**ALL_AT_ONCE) if self._is_integrated else recipe

    def _learning_rate(self, num_rows: int) -> float:
        if self.learning_rate_init != "auto":
            return float(self.learning_rate_init)
        return FULL_RATE if self._is_integrated and self._batch_size(num_rows) is None else RATE

    def _check_learning_rate(self) -> None:
        if not (isinstance(self.learning_rate_init, str) and self.learning_rate_init == "auto"):
            super()._check_learning_rate()

    def _batch_size(self, num_rows: int) -> int | None:
        return None if self._takes_all_rows(num_rows) else super()._batch_size(num_rows)

    def _function_draws(self, X: np.ndarray, num_draws: int, key: np.ndarray, *, joint: bool = False) -> FunctionDraws:
        if self.model_.output is None:
            return super()._function_draws(X, num_draws, key, joint=joint)
        num_below = max(1, int(self.n_predict_draws) // FUNCTIONS_PER_DRAW)
        draws = IntegratedDraws(self.model_, self.draw_key_, num_below, key, num_draws, self._in_units(X))
        return draws.coherent() if joint else draws

    @property
    def _has_gaussian_noise(self) -> bool:
        """Whether targets have Gaussian noise, so that an integrated output layer has a closed form."""
        return getattr(self, "likelihood", None) == "gaussian"

    def _regime(self, num_rows: int, num_functions: int = 1) -> str:
        """Return the regime of the output layer; one that sees rows in batches where a size of them is asked for."""
        in_batches = self.batch_size != "auto" and int(self.batch_size) < num_rows
        if self.output_layer == "auto" and in_batches:
            return "pseudo_observations"
        regime = chosen_regime(self.output_layer, self._has_gaussian_noise, num_rows, num_functions)
        if in_batches and regime != "pseudo_observations":
            raise ValueError(
                f"batch_size: expected 'auto' or at least the {num_rows} rows with output_layer={regime!r}, which sees "
                f"all rows at every step; got {self.batch_size}. Take output_layer='pseudo_observations' for batches."
            )
        return regime

    def _takes_all_rows(self, num_rows: int) -> bool:
        """Return whether a step must see all rows; a fit that goes on keeps the regime that it has."""
        if self._going_on():
            return self.model_.output is not None and self.model_.output.takes_all_rows
        return self._is_integrated and self._regime(num_rows) != "pseudo_observations"

    @property
    def _float_type(self) -> str:
        if self.dtype != "auto":
            return self.dtype
        return "float64" if self._is_integrated and self._has_gaussian_noise else "float32"

    def _known_dtypes(self) -> tuple[str, ...]:
        return ("auto", *super()._known_dtypes())

    @property
    def _noise_at_start(self) -> float:
        return INTEGRATED_START_NOISE if self._is_integrated else super()._noise_at_start

    def _initial_weights(self, network: Dense, problem: Problem, rng: np.random.Generator) -> WeightModel:
        num_layers = len(network.weight_layers)
        below = self._layers_named("mean_field_layers", self.mean_field_layers, num_layers) or ()
        others = [layer for layer in range(num_layers) if layer not in below]
        if not others:
            raise ValueError(f"mean_field_layers: expected a layer to be left for the GP; got all {num_layers}.")
        spec = self._spec(problem, num_layers, others)
        weight_layers = [network.weight_layers[layer] for layer in others]
        chosen = spec.local_layers
        local_below = chosen is None or any(layer not in (-1, len(others) - 1) for layer in chosen)
        if spec.integrated and spec.input_kernel is not None and local_below and spec.conditional.couples_rows:
            raise ValueError(
                "conditional: expected 'pathwise' with local layers below an integrated output layer; 'full' draws the "
                "rows of a call jointly. Take local_layers=(-1,), or output_layer='drawn'."
            )
        spec = dataclasses.replace(spec, n_inducing=self._n_inducing(spec, weight_layers, len(problem.x)))
        both = self._layers_of_gp("residual_layers", self.residual_layers, num_layers, others) or ()
        if below or both:
            return initial_mixed(spec, network, below, problem.x_unit, rng, both)
        return initial_metagp(spec, weight_layers, problem.x_unit, rng)

    @staticmethod
    def _layers_named(name: str, layers: Sequence[int] | str | None, num_layers: int) -> tuple[int, ...] | None:
        """Return layers of weights, counted from the input; None where none are named."""
        if layers is None:
            return None
        named: list[Any] = np.atleast_1d(np.asarray(layers)).tolist()
        if not all(is_whole(layer) and -num_layers <= layer < num_layers for layer in named):
            raise ValueError(
                f"{name}: the network has {num_layers} layers of weights (0 to {num_layers - 1}, or negative from the "
                f"end); got {layers!r}."
            )
        return tuple(sorted({int(layer) % num_layers for layer in named}))

    def _layers_of_gp(
        self, name: str, layers: Sequence[int] | str | None, num_layers: int, others: list[int]
    ) -> tuple[int, ...] | None:
        """Return layers that must be the GP's; "all" are those that have it."""
        if isinstance(layers, str) and layers == "all":
            return tuple(others)
        named = self._layers_named(name, layers, num_layers)
        if named is not None and not set(named) <= set(others):
            raise ValueError(f"{name}: expected layers that have the GP, of {others}; got {layers!r}.")
        return named

    def _local_layers(self, num_layers: int, others: list[int]) -> tuple[int, ...] | None:
        """Return which of the GP's layers are local, counted among these."""
        named = self._layers_of_gp("local_layers", self.local_layers, num_layers, others)
        if named is None and self._is_integrated:
            return (-1,)
        return None if named is None else tuple(others.index(layer) for layer in named)

    @property
    def _noise_hold(self) -> float:
        if self._is_integrated:
            return 0.0
        return super()._noise_hold if self.input_kernel is None else LOCAL_NOISE_HOLD

    @property
    def _is_one_run(self) -> bool:
        return int(self.n_restarts) == 0

    def _fit(
        self,
        x: np.ndarray,
        targets: np.ndarray,
        likelihood: Likelihood,
        num_functions: int,
        place: CheckpointConfig | None = None,
    ) -> None:
        """Train from one start, or from several side by side and keep the one with the highest ELBO."""
        if self._is_one_run or self._going_on():
            super()._fit(x, targets, likelihood, num_functions, place)
            return
        if place is not None:
            raise ValueError("checkpoint: expected n_restarts=0; several runs side by side are not kept.")
        seed, problem = self._begun(x, targets, likelihood, num_functions)
        starts = [problem._replace(start=start) for start in range(1 + int(self.n_restarts))]
        jobs = [self._job(own, seed + own.start) for own in starts]
        fits = trained_together(self, jobs)
        best = int(np.argmax([np.mean(fit.history["elbo"][-len(fit.history["elbo"]) // 10 :]) for fit in fits]))
        self._keep(fits[best], jobs[best].seed)

    def _keep(self, fit: Fit, seed: int) -> None:
        super()._keep(fit, seed)
        weights = metagp_of(self.model_.weights)
        kernel, projected = weights.input_kernel, bool(weights.input_map.means)
        self.input_kernel_ = kernel if kernel is None or projected else kernel.unstandardised(self.x_scale_)
        _warn_of_far_codes(weights)

    def _draws_a_step(self, num_rows: int) -> StepConfig:
        usual = 1 if self._is_integrated else NUM_TRAIN_DRAWS
        num_latent = usual if self.n_train_draws == "auto" else int(self.n_train_draws)
        return StepConfig(self._batch_size(num_rows), num_latent, int(self.n_weight_draws))

    @property
    def _has_local_noise(self) -> bool:
        """Whether the weight noise of a local output layer follows the input kernel."""
        return False

    @property
    def _weight_gp(self) -> str:
        """Which layers share a GP."""
        if self.weight_gp != "auto":
            return self.weight_gp
        return "per_layer" if self._is_integrated else "shared"

    def _usual_weight_kernels(self) -> tuple[Kernel, Kernel]:
        """Return the kernels of a weight's two ends where the user names none."""
        return kernels.RBF(), kernels.RBF()

    def _spec(self, problem: Problem, num_layers: int, others: list[int]) -> MetaGPSpec:
        """Return the prior of `others`, the layers that have it, in standardised units."""
        pair = self.weight_kernel if isinstance(self.weight_kernel, tuple) else (self.weight_kernel,) * 2
        if len(pair) != 2:
            raise ValueError(f"weight_kernel: expected one kernel, or a pair (input unit, output unit); got {pair!r}.")
        kernel_in, kernel_out = (
            usual if k is None else kernels.named(k, "weight_kernel")
            for k, usual in zip(pair, self._usual_weight_kernels(), strict=True)
        )
        asked: Any = self.input_projection
        projection = Projection((int(asked),)) if is_whole(asked) else asked
        if not (projection is None or isinstance(projection, Projection)):
            raise ValueError(f"input_projection: expected a number of dimensions or a Projection; got {projection!r}.")
        return MetaGPSpec(
            latent_dim=int(self.latent_dim),
            kernel_in=kernel_in,
            kernel_out=kernel_out,
            input_kernel=self._input_kernel(problem, projection),
            projection=projection,
            local_layers=self._local_layers(num_layers, others),
            weight_gp=self._weight_gp,
            conditional=conditional_named(self.conditional),
            heteroscedastic=self.heteroscedastic_weights,
            jitter=JITTER[self._float_type],
            integrated=self._is_integrated,
            local_noise=self._has_local_noise,
        )

    def _input_kernel(self, problem: Problem, projection: Projection | None) -> Kernel | None:
        if self.input_kernel is None:
            return None
        kernel = kernels.named(self.input_kernel, "input_kernel")
        if projection is not None:
            if kernel.unknown_periods():
                raise ValueError("input_kernel: with an input_projection, give the period (in projected units).")
            return kernel
        # rows of D standardised columns lie about sqrt(2 D) apart
        start = float(np.sqrt(problem.x.shape[1])) if self._is_integrated else START_LENGTHSCALE
        return input_kernel_for(kernel, problem.x, problem.targets, self.x_scale_, problem.start, start)

    def _n_inducing(self, spec: MetaGPSpec, weight_layers: Sequence[WeightLayer], num_rows: int) -> int:
        """Return the number of inducing codes; no GP needs more than it has codes of weights (at every row)."""
        groups, local = layer_groups(len(weight_layers), spec)
        drawn = range(len(weight_layers) - 1 if spec.integrated else len(weight_layers))
        codes = [
            sum(weight_layers[layer].num_weights for layer in group if layer in drawn) * (num_rows if is_local else 1)
            for group, is_local in zip(groups, local, strict=True)
            if is_local or not spec.integrated  # below an integrated output layer a global layer has them all
        ]
        most = min((count for count in codes if count), default=NUM_INDUCING)
        if self.n_inducing == "auto":
            return min(NUM_INDUCING, most)
        if any(codes) and int(self.n_inducing) > most:
            raise ValueError(
                f"n_inducing: {self.n_inducing} inducing codes are more than there are codes of weights ({most}); "
                f"give at most {most}."
            )
        return int(self.n_inducing)

    def _whole_numbers(self) -> list[tuple[str, int]]:
        others = [pair for pair in super()._whole_numbers() if pair[0] != "n_train_draws"]
        return [*others, ("latent_dim", 1), ("n_weight_draws", 1), ("n_restarts", 0)]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        expect_auto_or_whole("n_inducing", self.n_inducing)
        expect_auto_or_whole("n_inducing_rows", self.n_inducing_rows)
        expect_auto_or_whole("n_train_draws", self.n_train_draws)
        uncertain = self.uncertain_hypers
        is_known = isinstance(uncertain, bool | np.bool_) or (isinstance(uncertain, str) and uncertain == "auto")
        expect("uncertain_hypers", uncertain, "True, False or 'auto'", is_known)
        known = isinstance(self.output_layer, str) and self.output_layer in REGIMES
        expect("output_layer", self.output_layer, f"one of {REGIMES}", known)
        if self.output_layer not in ("auto", "drawn"):
            self._check_can_integrate()

    def _check_can_integrate(self) -> None:
        """Say so where the output layer is to be integrated and another parameter stands against it."""
        name = f"output_layer={self.output_layer!r}"
        if isinstance(conditional_named(self.conditional), Diag | FITC):
            raise ValueError(
                f"{name}: expected conditional='pathwise' or 'full'; with {self.conditional!r} every row draws weights "
                "of its own, and there is no function to integrate over. Take output_layer='drawn' with it."
            )
        if self.residual_layers is not None:
            raise ValueError(f"{name}: expected residual_layers=None: anchored weights need none; or take 'drawn'.")
        if self._last_is_mean_field():
            raise ValueError(f"{name}: expected a last layer with the GP; mean_field_layers names it, too.")


@accepts_old_names
@dataclass(eq=False, repr=False)
class MetaGPRegressor(RegressorPart, MetaGPEstimator):
    """Regression by a neural network whose weight prior is a Gaussian process.

    Inputs and targets are standardised inside, and everything given or answered is in the units of the data.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int, default=(50,)
        Units of the hidden layers.
    activation : str or callable, default="tanh"
        "tanh", "relu", "logistic", "gelu", "silu", "elu", "softplus", "identity", or a JAX function.
    latent_dim : int, default=2
        Size of each unit's latent vector.
    output_layer : {"auto", "exact", "inducing_rows", "pseudo_observations", "drawn"}, default="auto"
        How the posterior of the output layer is found. Given everything below it, the output layer is Gaussian and is
        integrated out: "exact" (Gaussian noise, up to 4,000 rows times targets), "inducing_rows" (Gaussian noise,
        through `n_inducing_rows` rows) or "pseudo_observations" (any likelihood, rows in batches). "auto" takes the
        first up to 1,200 rows times targets, the second up to 50,000 rows, and the third for more rows, for every other
        likelihood and where a `batch_size` is given. "drawn" draws the output weights with all others, as the paper
        does; "auto" takes it where `conditional` is "fitc" or "diag", where `residual_layers` are named, and where the
        last layer is mean-field.
    n_inducing_rows : int or "auto", default="auto"
        Inducing rows of the output layer. "auto" is 300 for Gaussian noise and 100 for other likelihoods, or as many as
        there are rows. Up to 1,000 rows of three or four classes it is 200 over the number of classes: there every
        class has a precision of its own at every row, which gives a higher bound.
    uncertain_hypers : bool or "auto", default="auto"
        Whether lengthscales, periods, scales and noise have a posterior, log-normal each, instead of a point estimate,
        where the output layer is integrated. "auto": up to 50 rows, 500 with other likelihoods than the Gaussian, where
        point estimates are too sure of themselves.
    n_inducing : int or "auto", default="auto"
        Inducing codes of a GP whose weights are drawn and not all anchored; "auto" is 50, or as many as there are.
    weight_kernel : Kernel, str or pair, default=None
        Kernel on the latents at a weight's two ends (None: RBF); a pair gives each end its own.
    input_kernel : Kernel or str, default=None
        Kernel on the input that modulates the weights (MetaGP-local); None is the global MetaGP. A `Periodic`
        kernel without a period finds its own in the spectrum of the data.
    weight_gp : {"auto", "shared", "per_layer"}, default="auto"
        One GP for the whole network, or one per layer. "auto" is one per layer where the output layer is integrated,
        which is as good and many times as fast, and one for all where every weight is drawn, as in the paper.
    conditional : {"pathwise", "fitc", "diag", "full"} or Conditional, default="pathwise"
        How weights are drawn given latents and inducing values.
    input_projection : int or Projection, default=None
        Let the input kernel see g(V x) of this size, V learned, instead of x.
    local_layers : sequence of int, default=None
        Layers of weights that the input kernel modulates (-1: the last). None means the output layer where it is
        integrated, and all that have the GP where every weight is drawn.
    mean_field_layers : sequence of int, default=None
        Layers of weights that have no GP but independent Gaussian weights, as a usual Bayesian network; None: no
        layer. The prior's scale is learned below an integrated output layer, and 1 where every weight is drawn.
    residual_layers : sequence of int, "all" or None, default=None
        Layers whose every weight has, beside its value of the GP, a part of its own: an independent Gaussian under a
        unit-normal prior. For `output_layer="drawn"` alone, whose GP through few inducing codes is too stiff for
        tables and images; the cost of such a layer grows with its weights. "all": every layer that has the GP.
    heteroscedastic_weights : bool, default=False
        Whether the weight noise depends on the code.
    likelihood : {"gaussian", "heteroscedastic", "student_t", "poisson"}, default="gaussian"
        The distribution of a target around the network's output (its logarithm for "poisson"); "heteroscedastic" is
        a Gaussian whose noise is a function of the input, learned like the mean.
    noise : float or sequence, default=None
        A fixed noise level (in target units) for "gaussian" and "student_t"; None: learned.
    noise_hold : float, default=None
        The part of training for which a learned noise level is held at its start. None: not at all where the output
        layer is integrated; where every weight is drawn 0.5 with an input kernel, 0.8 without.
    max_iter : int, default=3000
        Steps of the optimiser at most. With an integrated output layer training ends when the bound no longer rises;
        where every weight is drawn it takes all of them. From 400 rows on, a fit with `output_layer="exact"` begins
        with inducing rows, which is quicker, and has at most half of the steps for either.
    batch_size : int or "auto", default="auto"
        Rows of a step. "auto" is all of them for "exact" and "inducing_rows"; else all up to 512, then 256.
    learning_rate_init : float or "auto", default="auto"
        Adam's step size, which falls by a cosine once the bound is flat. "auto" is 0.1 where the output layer is
        integrated and a step sees all rows, else 0.02.
    optimizer : optax.GradientTransformation, default=None
        Another optimiser; it brings its own step size. Keep one object for all fits: a new one compiles anew.
    n_train_draws : int or "auto", default="auto"
        Draws of the latents in a step; "auto" is 1 with an integrated output layer and 4 without.
    n_weight_draws : int, default=1
        Draws of the weights for each draw of the latents.
    n_predict_draws : int, default=128
        Functions that predictions draw; fixed when the fit ends. With an integrated output layer they stand for an
        eighth as many draws of the layers below, and means, variances and densities need no functions at all.
    n_restarts : int, default=0
        Fits from that many further starts, side by side in one program; the highest ELBO wins. A period that is not
        given starts from another peak of the spectrum each time.
    early_stopping : bool, default=False
        Hold out `validation_fraction` and stop when its score has not risen by `tol` for `n_iter_no_change` looks
        (one every 100 steps).
    validation_fraction, n_iter_no_change, tol :
        See above; without `early_stopping` a `tol` above 0 stops on a flat ELBO (nats a datum).
    input_scaling : {"per_column", "joint"}, default="per_column"
        Whether every column is standardised by its own mean and spread, or all by those of all values: right where
        they have one unit, as the pixels of an image, of which some hardly ever vary.
    dtype : {"auto", "float32", "float64"}, default="auto"
        The type that training computes in; predictions are float64. "auto" is float64 where an output layer with
        Gaussian noise is integrated, float32 otherwise.
    warm_start : bool, default=False
        Let `fit` go on from the last fit.
    devices : int, "all" or None, default=None
        Devices that the rows of a step are spread over; None: one. "all" reaches over the hosts of `jax.distributed`.
    random_state : int, RandomState or None, default=None
    verbose : bool, default=False
        Show a progress bar with the ELBO and its terms on stderr.

    Attributes
    ----------
    model_ : metaprior.model.Model
        The fitted model.
    input_kernel_ : Kernel or None
        The fitted input kernel, in data units.
    elbo_history_ : ndarray of shape (n_iter_,)
        The ELBO at every step, in nats, larger is better.
    elbo_terms_ : dict of ndarray
        Its terms: `log_likelihood`, `kl_z`, `kl_u` and, where they are there, `kl_V`, `kl_w`, `kl_f`, `kl_theta`.
    n_iter_ : int
        Steps taken.

    Examples
    --------
    >>> import numpy as np
    >>> from metaprior import MetaGPRegressor, kernels
    >>> x = np.linspace(-2, 2, 80)[:, None]
    >>> model = MetaGPRegressor(input_kernel=kernels.Periodic(), random_state=0).fit(x, np.sin(4 * x[:, 0]))
    >>> mean, std = model.predict(x + 4, return_std=True)
    """


@accepts_old_names
@dataclass(eq=False, repr=False)
class MetaGPClassifier(ClassifierPart, MetaGPEstimator):
    """Classification by a neural network whose weight prior is a Gaussian process.

    Two classes are told apart by one function (Bernoulli), more by one a class (categorical). The parameters are
    those of `MetaGPRegressor` less `likelihood` and `noise`. The usual `weight_kernel` differs in one thing: on the
    output unit's latent the lengthscale stays below 1.5, so that no class stands between others in the prior and the
    probabilities far from the data are even.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    model_, input_kernel_, elbo_history_, elbo_terms_, n_iter_ :
        As for `MetaGPRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from metaprior import MetaGPClassifier
    >>> X, y = make_moons(100, noise=0.1, random_state=0)
    >>> model = MetaGPClassifier(input_kernel="rbf", random_state=0).fit(X, y)
    >>> far_away = model.predict_distribution(100 + X).entropy
    """

    @property
    def _has_local_noise(self) -> bool:
        # weight noise that is the same everywhere would carry what the data say to where nothing is known
        return True

    def _usual_weight_kernels(self) -> tuple[Kernel, Kernel]:
        return kernels.RBF(), kernels.RBF(bounds={"lengthscale": (1e-2, LONGEST_OUTPUT_LENGTHSCALE)})


def _warn_of_far_codes(weights: MetaGP) -> None:
    """Warn where unit latents lie so far apart, in lengthscales, that the prior hardly couples their weights.

    A GP through few inducing codes says nothing of such weights; anchored ones are known each for itself.
    """
    z = np.asarray(weights.latents.mean, np.float64)
    for sparse_gp in (own for own in weights.sparse_gps if not isinstance(own, Anchored)):
        for kernel in (sparse_gp.kernel_in, sparse_gp.kernel_out):
            if not hasattr(kernel, "log_lengthscale"):
                continue
            scaled = z / np.exp(np.asarray(kernel.log_lengthscale))
            distance = np.sqrt(np.sum((scaled[:200, None] - scaled[None, :200]) ** 2, axis=-1))
            median = float(np.median(distance[np.triu_indices(len(distance), 1)]))
            if median > 3:
                warnings.warn(
                    f"the median distance of unit latents is {median:.1f} lengthscales: the weights are almost "
                    "independent, and the prior shares little between them; a longer lengthscale would.",
                    UserWarning,
                    stacklevel=5,
                )
