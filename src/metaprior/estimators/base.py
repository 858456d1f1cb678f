"""What both estimators share: scikit-learn's contract around a MetaGP model.

`fit` standardises, builds the model, trains it and fixes the draws; `predict_distribution` answers with a
`Predictive`. Nothing jitted hangs on the estimator, and predicting adds no attribute, so it clones, pickles and copies.
"""

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import optax
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from metaprior import kernels
from metaprior.compilation import compilation_cache
from metaprior.estimators.period import starting_periods
from metaprior.estimators.progress import progress_bar
from metaprior.estimators.stopping import FlatElbo, HeldOutScore
from metaprior.inference import ADAM, Data, Draws, Fit, Recipe, make_data, train
from metaprior.inputs import Projection
from metaprior.kernels import Kernel
from metaprior.likelihoods import Likelihood
from metaprior.mapping import Conditional, conditional_named
from metaprior.model import Model
from metaprior.networks import Dense
from metaprior.noise import make_key
from metaprior.prediction import FunctionDraws, Predictive
from metaprior.weights import MetaGPSpec, initial_metagp
from metaprior.weights.start import layer_groups

#: Rows up to which every step sees all data, and rows of a batch beyond that.
FULL_BATCH, AUTO_BATCH = 512, 256
#: Where in the recipe a warm start begins: everything is let in, only the noise is still held.
WARM_BEGINS = 0.7
#: Relative jitter of the factorisations.
JITTER = {"float32": 1e-4, "float64": 1e-6}


class MetaGPEstimator(BaseEstimator):
    """The parameters and the machinery of both estimators; see `MetaGPRegressor`."""

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] = (50,),
        activation: str | Callable = "tanh",
        *,
        latent_dim: int = 2,
        num_inducing: int | str = "auto",
        weight_kernel: Kernel | str | tuple | None = None,
        input_kernel: Kernel | str | None = None,
        mapping: str = "global",
        conditional: str | Conditional = "pathwise",
        input_projection: int | Projection | None = None,
        local_layers: Sequence[int] | None = None,
        heteroscedastic_weights: bool = False,
        max_iter: int = 3000,
        batch_size: int | str = "auto",
        learning_rate_init: float = 0.02,
        optimizer: optax.GradientTransformation | None = None,
        num_train_draws: int = 4,
        num_weight_draws: int = 1,
        num_predict_draws: int = 128,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        tol: float = 0.0,
        dtype: str = "float32",
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | int = False,
    ) -> None:
        """Keep the parameters; nothing is checked or computed before `fit`."""
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.latent_dim = latent_dim
        self.num_inducing = num_inducing
        self.weight_kernel = weight_kernel
        self.input_kernel = input_kernel
        self.mapping = mapping
        self.conditional = conditional
        self.input_projection = input_projection
        self.local_layers = local_layers
        self.heteroscedastic_weights = heteroscedastic_weights
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate_init = learning_rate_init
        self.optimizer = optimizer
        self.num_train_draws = num_train_draws
        self.num_weight_draws = num_weight_draws
        self.num_predict_draws = num_predict_draws
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.dtype = dtype
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def _checked(self, X: Any, *target: Any, **kwargs: Any) -> Any:
        """Validate X (at predict) or X and y (at fit) as scikit-learn does; name columns that are not numbers."""
        try:
            return validate_data(self, X, *target, reset=bool(target), dtype=np.float64, **kwargs)
        except ValueError as error:
            columns = _text_columns(X)
            if "could not convert" in str(error) and columns:
                raise ValueError(
                    f"expected numeric columns; {columns} are not: encode them (for instance with scikit-learn's "
                    "OneHotEncoder) or leave them out."
                ) from error
            raise

    def _fit(self, x: np.ndarray, targets: np.ndarray, likelihood: Likelihood, num_functions: int) -> None:
        """Build or continue a model and train it on raw inputs and (standardised) targets."""
        self._check_parameters()
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        going_on = self.warm_start and hasattr(self, "model_")
        if not going_on:
            self.x_offset_, self.x_scale_ = _standard(x)
        else:
            self._check_continued(x.shape[1], num_functions)
        x_unit = (x - self.x_offset_) / self.x_scale_
        model = self._started(x, x_unit, targets, likelihood, num_functions, seed, going_on)
        with compilation_cache(), jax.enable_x64(self.dtype == "float64"):
            data, stop_when = self._split(x_unit, targets, seed)
            with progress_bar(self.verbose) as listener:
                fit = train(
                    model,
                    data,
                    make_key(seed),
                    recipe=Recipe(
                        num_steps=int(self.max_iter),
                        learning_rate=self.learning_rate_init if self.optimizer is None else 1.0,
                        begins=WARM_BEGINS if going_on else 0.0,
                    ),
                    draws=Draws(self._batch_size(len(x)), int(self.num_train_draws), int(self.num_weight_draws)),
                    optimiser=ADAM if self.optimizer is None else self.optimizer,
                    listener=listener,
                    stop_when=stop_when,
                )
        self._keep(fit, seed)

    def _keep(self, fit: Fit, seed: int) -> None:
        """Store the result as NumPy arrays: it pickles, and nothing of it lives on a device."""
        self.model_ = jax.tree.map(lambda leaf: np.asarray(leaf) if hasattr(leaf, "dtype") else leaf, fit.model)
        self.draw_key_ = np.array([seed, 0], np.uint32)
        self.n_iter_ = fit.num_steps
        self.elbo_history_ = fit.history["elbo"]
        self.elbo_terms_ = {name: values for name, values in fit.history.items() if name != "elbo"}
        kernel = self.model_.weights.input_kernel
        projected = bool(self.model_.weights.input_map.means)
        self.input_kernel_ = kernel if kernel is None or projected else kernel.unstandardised(self.x_scale_)
        _warn_of_far_codes(self.model_)

    def _started(
        self,
        x: np.ndarray,
        x_unit: np.ndarray,
        targets: np.ndarray,
        likelihood: Likelihood,
        num_functions: int,
        seed: int,
        going_on: bool,
    ) -> Model:
        if going_on:
            return self.model_
        sizes = np.atleast_1d(np.asarray(self.hidden_layer_sizes, dtype=int))
        network = Dense((x.shape[1], *sizes.tolist(), num_functions), self.activation)
        spec = self._spec(x, targets)
        spec = dataclasses.replace(spec, num_inducing=self._num_inducing(spec, network, len(x)))
        return Model(initial_metagp(spec, network, x_unit, np.random.default_rng(seed)), network, likelihood)

    def _check_continued(self, num_features: int, num_functions: int) -> None:
        """Say so where a warm start gets other data than the last fit had."""
        first, *_, last = self.model_.network.sizes
        for what, expected, got in [("features", first, num_features), ("targets", last, num_functions)]:
            if got != expected:
                raise ValueError(f"warm_start: expected {expected} {what}, as in the last fit; got {got}.")

    def _usual_weight_kernels(self) -> tuple[Kernel, Kernel]:
        """Return the kernels of a weight's two ends where the user names none."""
        return kernels.RBF(), kernels.RBF()

    def _spec(self, x: np.ndarray, targets: np.ndarray) -> MetaGPSpec:
        """Return the prior that the parameters describe, in standardised units."""
        pair = self.weight_kernel if isinstance(self.weight_kernel, tuple) else (self.weight_kernel,) * 2
        if len(pair) != 2:
            raise ValueError(f"weight_kernel: expected one kernel, or a pair (input unit, output unit); got {pair!r}.")
        kernel_in, kernel_out = (
            usual if k is None else kernels.named(k, "weight_kernel")
            for k, usual in zip(pair, self._usual_weight_kernels(), strict=True)
        )
        asked: Any = self.input_projection
        projection = Projection((int(asked),)) if _whole(asked) else asked
        if not (projection is None or isinstance(projection, Projection)):
            raise ValueError(f"input_projection: expected a number of dimensions or a Projection; got {projection!r}.")
        return MetaGPSpec(
            latent_dim=int(self.latent_dim),
            kernel_in=kernel_in,
            kernel_out=kernel_out,
            input_kernel=self._input_kernel(x, targets, projection),
            projection=projection,
            local_layers=None if self.local_layers is None else tuple(np.atleast_1d(self.local_layers).tolist()),
            mapping=self.mapping,
            conditional=conditional_named(self.conditional),
            heteroscedastic=self.heteroscedastic_weights,
            jitter=JITTER[self.dtype],
        )

    def _input_kernel(self, x: np.ndarray, targets: np.ndarray, projection: Projection | None) -> Kernel | None:
        if self.input_kernel is None:
            return None
        kernel = kernels.named(self.input_kernel, "input_kernel")
        if projection is not None:
            if kernel.unknown_periods():
                raise ValueError("input_kernel: with an input_projection, give the period (in projected units).")
            return kernel
        if kernel.unknown_periods():
            kernel = kernel.with_periods(starting_periods(x, targets))
        return kernel.bound_to(x.shape[1]).standardised(self.x_scale_)

    def _num_inducing(self, spec: MetaGPSpec, network: Dense, num_rows: int) -> int:
        """Return the number of inducing codes; no mapping needs more than it has codes of weights (at every row)."""
        groups, local = layer_groups(len(network.wires), spec)
        most = min(
            sum(network.wires[layer].num_weights for layer in group) * (num_rows if is_local else 1)
            for group, is_local in zip(groups, local, strict=True)
        )
        if self.num_inducing == "auto":
            return min(50, most)
        if int(self.num_inducing) > most:
            raise ValueError(
                f"num_inducing: {self.num_inducing} inducing codes are more than there are codes of weights ({most}); "
                f"give at most {most}."
            )
        return int(self.num_inducing)

    def _batch_size(self, num_rows: int) -> int | None:
        if self.batch_size == "auto":
            return None if num_rows <= FULL_BATCH else AUTO_BATCH
        return None if int(self.batch_size) >= num_rows else int(self.batch_size)

    def _split(self, x: np.ndarray, targets: np.ndarray, seed: int) -> tuple[Data, Callable | None]:
        """Return the data to train on and the rule that may end the run early."""
        dtype = np.dtype(self.dtype).type
        if not self.early_stopping:
            rule = FlatElbo(self.tol, self.n_iter_no_change, len(x)) if self.tol > 0 else None
            return make_data(x, targets, dtype=dtype), rule
        order = np.random.default_rng([seed, 1]).permutation(len(x))
        held = max(1, round(self.validation_fraction * len(x)))
        if held >= len(x):
            raise ValueError(f"early_stopping: {len(x)} rows are too few to hold out {held} of them.")
        rule = HeldOutScore(
            self.tol,
            self.n_iter_no_change,
            make_data(x[order[:held]], targets[order[:held]], dtype=dtype),
            make_key(seed),
        )
        return make_data(x[order[held:]], targets[order[held:]], dtype=dtype), rule

    def _function_draws(self, X: Any, num_draws: int, key: np.ndarray, *, joint: bool = False) -> FunctionDraws:
        x_unit = (X - self.x_offset_) / self.x_scale_
        return FunctionDraws(self.model_, key, num_draws, x_unit, joint=joint)

    def predict_distribution(self, X: Any) -> Predictive:
        """Return the predictive distribution at X: mean, variances, quantiles, entropy, log density, draws.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        Predictive
        """
        check_is_fitted(self)
        X = self._checked(X)
        return self._predictive(self._function_draws(X, int(self.num_predict_draws), self.draw_key_))

    def _predictive(self, draws: FunctionDraws) -> Predictive:
        raise NotImplementedError

    def _sampled(self, X: Any, n_samples: int, random_state: Any) -> Predictive:
        check_is_fitted(self)
        X = self._checked(X)
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        return self._predictive(self._function_draws(X, n_samples, np.array([seed, 1], np.uint32), joint=True))

    def _check_parameters(self) -> None:
        """Say what is expected of every parameter that is not as expected."""
        hidden = np.atleast_1d(np.asarray(self.hidden_layer_sizes))
        _expect(
            "hidden_layer_sizes",
            self.hidden_layer_sizes,
            "whole numbers of at least 1",
            bool(
                hidden.ndim == 1
                and (hidden.size == 0 or (np.issubdtype(hidden.dtype, np.integer) and hidden.min() >= 1))
            ),
        )
        for name, lowest in [
            ("latent_dim", 1),
            ("max_iter", 1),
            ("num_train_draws", 1),
            ("num_weight_draws", 1),
            ("num_predict_draws", 2),
            ("n_iter_no_change", 1),
        ]:
            value = getattr(self, name)
            _expect(name, value, f"a whole number of at least {lowest}", _whole(value) and value >= lowest)
        for name in ("num_inducing", "batch_size"):
            value = getattr(self, name)
            _expect(
                name,
                value,
                "'auto' or a whole number of at least 1",
                value == "auto" or (_whole(value) and value >= 1),
            )
        rate, fraction = self.learning_rate_init, self.validation_fraction
        _expect("learning_rate_init", rate, "a positive number", _number(rate) and rate > 0)
        _expect("tol", self.tol, "a number of at least 0", _number(self.tol) and self.tol >= 0)
        _expect(
            "validation_fraction",
            fraction,
            "a number between 0 and 1",
            _number(fraction) and 0 < fraction < 1,
        )
        _expect("dtype", self.dtype, "'float32' or 'float64'", self.dtype in JITTER)
        is_optax = self.optimizer is None or (hasattr(self.optimizer, "init") and hasattr(self.optimizer, "update"))
        _expect("optimizer", self.optimizer, "an optax optimiser, or None for Adam", is_optax)


def _whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and bool(np.isfinite(value))


def _expect(name: str, value: object, what: str, holds: bool) -> None:
    if not holds:
        raise ValueError(f"{name}: expected {what}; got {value!r}.")


def _standard(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of every column; 1 for columns that do not vary."""
    offset, scale = columns.mean(axis=0), columns.std(axis=0)
    varies = scale > 1e-12 * np.maximum(np.abs(columns).max(axis=0), 1e-300)
    return offset, np.where(varies, scale, 1.0)


def _text_columns(X: Any) -> list:
    dtypes = getattr(X, "dtypes", None)
    if dtypes is None or not hasattr(dtypes, "items"):
        return []
    return [name for name, dtype in dtypes.items() if getattr(dtype, "kind", "O") not in "biuf"]


def _warn_of_far_codes(model: Model) -> None:
    """Warn where unit latents lie so far apart, in lengthscales, that the prior hardly couples their weights."""
    z = np.asarray(model.weights.units.mean, np.float64)  # type: ignore[attr-defined]
    for mapping in model.weights.mappings:  # type: ignore[attr-defined]
        for kernel in (mapping.kernel_in, mapping.kernel_out):
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
                    stacklevel=4,
                )
