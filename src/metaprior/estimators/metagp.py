"""The estimators of MetaGP: networks with a Gaussian-process weight prior behind scikit-learn's words."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import optax

from metaprior.estimators.base import Classifier, Regressor
from metaprior.estimators.config import NetworkConfig, TrainingConfig
from metaprior.estimators.documented import documented_like
from metaprior.estimators.metagp_config import MetaGPConfig
from metaprior.estimators.metagp_method import MetaGPMethod
from metaprior.estimators.renamed import accepts_old_names
from metaprior.inputs import Projection
from metaprior.kernels import Kernel
from metaprior.weight_gp import Conditional


@accepts_old_names
@dataclass(eq=False, repr=False)
class MetaGPRegressor(Regressor):
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
        Decides the start, the batches and the draws; an int gives the same fit every time.
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

    hidden_layer_sizes: Sequence[int] = (50,)
    activation: str | Callable[..., Any] = "tanh"
    _: KW_ONLY
    latent_dim: int = 2
    input_kernel: Kernel | str | None = None
    weight_kernel: Kernel | str | tuple[Any, ...] | None = None
    weight_gp: str = "auto"
    local_layers: Sequence[int] | None = None
    mean_field_layers: Sequence[int] | None = None
    residual_layers: Sequence[int] | str | None = None
    heteroscedastic_weights: bool = False
    input_projection: int | Projection | None = None
    input_scaling: str = "per_column"
    likelihood: str = "gaussian"
    noise: float | Sequence[float] | None = None
    noise_hold: float | None = None
    output_layer: str = "auto"
    n_inducing_rows: int | str = "auto"
    n_inducing: int | str = "auto"
    conditional: str | Conditional = "pathwise"
    uncertain_hypers: bool | str = "auto"
    max_iter: int = 3000
    batch_size: int | str = "auto"
    learning_rate_init: float | str = "auto"
    optimizer: optax.GradientTransformation | None = None
    n_train_draws: int | str = "auto"
    n_weight_draws: int = 1
    n_predict_draws: int = 128
    n_restarts: int = 0
    early_stopping: bool | str = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    tol: float = 0.0
    warm_start: bool = False
    dtype: str = "auto"
    devices: int | str | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: bool | int = False

    def _method(self) -> MetaGPMethod:
        return MetaGPMethod(MetaGPConfig.of(self), NetworkConfig.of(self), TrainingConfig.of(self), self.likelihood)


@accepts_old_names
@documented_like(MetaGPRegressor)
@dataclass(eq=False, repr=False)
class MetaGPClassifier(Classifier):
    """Classification by a neural network whose weight prior is a Gaussian process.

    Two classes are told apart by one function (Bernoulli), more by one per class (categorical). The usual
    `weight_kernel` differs in one thing from that of a regressor: on the output unit's latent the lengthscale stays
    below 1.5, so that no class stands between others in the prior and the probabilities far from the data are even.

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

    hidden_layer_sizes: Sequence[int] = (50,)
    activation: str | Callable[..., Any] = "tanh"
    _: KW_ONLY
    latent_dim: int = 2
    input_kernel: Kernel | str | None = None
    weight_kernel: Kernel | str | tuple[Any, ...] | None = None
    weight_gp: str = "auto"
    local_layers: Sequence[int] | None = None
    mean_field_layers: Sequence[int] | None = None
    residual_layers: Sequence[int] | str | None = None
    heteroscedastic_weights: bool = False
    input_projection: int | Projection | None = None
    input_scaling: str = "per_column"
    output_layer: str = "auto"
    n_inducing_rows: int | str = "auto"
    n_inducing: int | str = "auto"
    conditional: str | Conditional = "pathwise"
    uncertain_hypers: bool | str = "auto"
    max_iter: int = 3000
    batch_size: int | str = "auto"
    learning_rate_init: float | str = "auto"
    optimizer: optax.GradientTransformation | None = None
    n_train_draws: int | str = "auto"
    n_weight_draws: int = 1
    n_predict_draws: int = 128
    n_restarts: int = 0
    early_stopping: bool | str = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    tol: float = 0.0
    warm_start: bool = False
    dtype: str = "auto"
    devices: int | str | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: bool | int = False

    def _method(self) -> MetaGPMethod:
        return MetaGPMethod(MetaGPConfig.of(self), NetworkConfig.of(self), TrainingConfig.of(self), None)
