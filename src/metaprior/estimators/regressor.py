"""The regressor: a network with a Gaussian-process weight prior behind scikit-learn's words."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optax
from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from metaprior.estimators.base import MetaGPEstimator, _number, _standard
from metaprior.inputs import Projection
from metaprior.kernels import Kernel
from metaprior.likelihoods import Gaussian, Likelihood, Poisson, StudentT
from metaprior.mapping import Conditional
from metaprior.prediction import FunctionDraws, Predictive

#: Noise at the start, in standard deviations of the target: small, so that the signal is learned first.
START_NOISE = 0.1


class MetaGPRegressor(RegressorMixin, MetaGPEstimator):
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
    num_inducing : int or "auto", default="auto"
        Inducing codes of a mapping; "auto" is 50, or as many as there are codes.
    weight_kernel : Kernel, str or pair, default=None
        Kernel on the latents at a weight's two ends (None: RBF); a pair gives each end its own.
    input_kernel : Kernel or str, default=None
        Kernel on the input that modulates the weights (MetaGP-local); None is the global MetaGP. A `Periodic`
        kernel without a period finds its own in the spectrum of the data.
    mapping : {"global", "layer"}, default="global"
        One GP for all layers, or one a layer.
    conditional : {"pathwise", "fitc", "diag", "full"} or Conditional, default="pathwise"
        How weights are drawn given latents and inducing values.
    input_projection : int or Projection, default=None
        Let the input kernel see g(V x) of this size, V learned, instead of x.
    local_layers : sequence of int, default=None
        Layers of weights that the input kernel modulates (-1: the last); None means all.
    heteroscedastic_weights : bool, default=False
        Whether the weight noise depends on the code.
    likelihood : {"gaussian", "student_t", "poisson"}, default="gaussian"
        The distribution of a target around the network's output (its logarithm for "poisson").
    noise : float or sequence, default=None
        A fixed noise level (in target units) for "gaussian" and "student_t"; None: learned.
    max_iter : int, default=3000
        Steps of the optimiser.
    batch_size : int or "auto", default="auto"
        Rows of a step; "auto" is all of them up to 512, then 256.
    learning_rate_init : float, default=0.02
        Adam's step size; it falls by a cosine near the end.
    optimizer : optax.GradientTransformation, default=None
        Another optimiser; it brings its own step size. Keep one object for all fits: a new one compiles anew.
    num_train_draws, num_weight_draws : int, default=4 and 1
        Draws of the latents a step, and of the weights for each.
    num_predict_draws : int, default=128
        Draws that predictions mix; fixed when the fit ends.
    early_stopping : bool, default=False
        Hold out `validation_fraction` and stop when its score has not risen by `tol` for `n_iter_no_change` looks
        (one every 100 steps).
    validation_fraction, n_iter_no_change, tol :
        See above; without `early_stopping` a `tol` above 0 stops on a flat ELBO (nats a datum).
    dtype : {"float32", "float64"}, default="float32"
        The type that training computes in; predictions are float64.
    warm_start : bool, default=False
        Let `fit` go on from the last fit.
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
        Its terms: `log_likelihood`, `kl_z`, `kl_u` (and `kl_V`).
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
        likelihood: str = "gaussian",
        noise: float | Sequence[float] | None = None,
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
        super().__init__(
            hidden_layer_sizes,
            activation,
            latent_dim=latent_dim,
            num_inducing=num_inducing,
            weight_kernel=weight_kernel,
            input_kernel=input_kernel,
            mapping=mapping,
            conditional=conditional,
            input_projection=input_projection,
            local_layers=local_layers,
            heteroscedastic_weights=heteroscedastic_weights,
            max_iter=max_iter,
            batch_size=batch_size,
            learning_rate_init=learning_rate_init,
            optimizer=optimizer,
            num_train_draws=num_train_draws,
            num_weight_draws=num_weight_draws,
            num_predict_draws=num_predict_draws,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            tol=tol,
            dtype=dtype,
            warm_start=warm_start,
            random_state=random_state,
            verbose=verbose,
        )
        self.likelihood = likelihood
        self.noise = noise

    def __sklearn_tags__(self) -> Tags:
        """Several targets are welcome; counts must not be negative."""
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        tags.target_tags.positive_only = self.likelihood == "poisson"
        return tags

    def fit(self, X: Any, y: Any) -> "MetaGPRegressor":
        """Fit the network's posterior.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)

        Returns
        -------
        self
        """
        X, y = self._checked(X, y, multi_output=True, y_numeric=True)
        y = np.asarray(y, np.float64)
        flat, columns = y.ndim == 1, y.reshape(len(y), -1)
        if self.likelihood == "poisson" and (np.any(columns < 0) or np.any(columns != np.floor(columns))):
            raise ValueError("likelihood='poisson': expected counts (0, 1, 2, ...); y has other values.")
        if not (self.warm_start and hasattr(self, "model_")):
            self.y_offset_, self.y_scale_ = self._target_units(columns)
        likelihood = self._likelihood()
        self._flat = flat
        self._fit(X, (columns - self.y_offset_) / self.y_scale_, likelihood, columns.shape[1])
        return self

    def _target_units(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.likelihood == "poisson":
            return np.zeros(columns.shape[1]), np.ones(columns.shape[1])
        return _standard(columns)

    def _likelihood(self) -> Likelihood:
        known = ("gaussian", "student_t", "poisson")
        if self.likelihood not in known:
            raise ValueError(f"likelihood: expected one of {known}; got {self.likelihood!r}.")
        if self.likelihood == "poisson":
            return Poisson()
        learned = self.noise is None
        level = np.full(self.y_scale_.shape, START_NOISE)
        if not learned:
            values: np.ndarray = np.atleast_1d(np.asarray(self.noise))
            if values.ndim > 1 or values.size not in (1, level.size) or not all(_number(v) and v > 0 for v in values):
                raise ValueError(f"noise: expected a positive number, or one a target; got {self.noise!r}.")
            level = values.astype(np.float64) / self.y_scale_
        if self.likelihood == "gaussian":
            return Gaussian(np.log(level), learned)
        return StudentT(np.log(level), np.asarray(np.log(3.0)), learned)

    def _predictive(self, draws: FunctionDraws) -> Predictive:
        return Predictive(draws, self.model_.likelihood, self.y_offset_, self.y_scale_, flat=self._flat)

    def predict(self, X: Any, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Predict the mean of y, and its standard deviation if asked.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_std : bool, default=False
            Whether to return the predictive standard deviation (function and noise) as well.

        Returns
        -------
        mean, or (mean, std) : ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        predictive = self.predict_distribution(X)
        return (predictive.mean, predictive.std) if return_std else predictive.mean

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Draw functions from the posterior, coherent over the rows of X (without observation noise).

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples) or (n_samples_X, n_targets, n_samples)
        """
        return np.moveaxis(self._sampled(X, n_samples, random_state).draws(), 0, -1)
