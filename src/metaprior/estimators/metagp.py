"""The estimators of MetaGP: networks with a Gaussian-process weight prior behind scikit-learn's words."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import optax

from metaprior.estimators.base import Classifier, Regressor
from metaprior.estimators.config import NetworkConfig, TrainingConfig
from metaprior.estimators.documented import documented_like
from metaprior.estimators.kernel_search import kernel_search_of
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

    Inputs and targets are standardised internally. Everything you give, such as a period, and everything that is
    returned is in the units of the data.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int, default=(50,)
        The number of units in each hidden layer.
    activation : str or callable, default="tanh"
        "tanh", "relu", "logistic", "gelu", "silu", "elu", "softplus", "identity", or a JAX function.
    latent_dim : int, default=2
        The size of the latent vector of each unit.
    input_kernel : Kernel, str or None, default="auto"
        A kernel on the input that modulates the weights (MetaGP-local). None gives the global MetaGP. A `Periodic`
        kernel without a period takes its period from the spectrum of the data. "auto" trains some candidates for a
        bounded number of steps and goes on with the one whose ELBO is the highest: none, RBF, Matern 3/2 and linear +
        RBF, for one or two columns in which waves stand out also periodic, periodic + RBF, linear + periodic + RBF and
        periodic x RBF with the strongest periods, and for 30 columns or more an RBF on a learned projection of them.
        Another one than the RBF has to be more than two nats above it. `kernel_search_` has all of them,
        `input_kernel_` the one that was taken. A fit that goes on from another keeps its kernel. If every weight is
        drawn (`output_layer`), the ELBO does not tell such kernels apart, and "auto" is None as in the paper.
    weight_kernel : Kernel, str or pair, default=None
        The kernel on the latent vectors at the two ends of a weight. None is an RBF kernel. A pair gives each end a
        kernel of its own.
    weight_gp : {"auto", "shared", "per_layer"}, default="auto"
        One GP for the whole network, or one per layer. "auto" is one per layer if the output layer is integrated, which
        is as good and many times as fast, and one for the whole network if every weight is drawn, as in the paper.
    local_layers : sequence of int, default=None
        The layers of weights that the input kernel modulates; -1 is the last. None is the output layer if that is
        integrated, and every layer with the GP if all weights are drawn.
    mean_field_layers : sequence of int, default=None
        Layers of weights that have independent Gaussian weights instead of the GP, as in an ordinary Bayesian network.
        The scale of their prior is learned below an integrated output layer, and is 1 if every weight is drawn.
    residual_layers : sequence of int, "all" or None, default=None
        Layers in which every weight has, beside the value of the GP, a part of its own: an independent Gaussian with a
        unit-normal prior. Only for `output_layer="drawn"`, where a GP with few inducing codes is too stiff for tables
        and images. The cost of such a layer grows with its weights. "all" is every layer with the GP.
    heteroscedastic_weights : bool, default=False
        Whether the weight noise depends on the code of the weight.
    input_projection : int or Projection, default=None
        Let the input kernel see a learned projection of the input, of this size, instead of the input itself.
    input_scaling : {"per_column", "joint"}, default="per_column"
        Whether each column is standardised by its own mean and spread, or all columns by those of all values. "joint"
        is right for columns of one unit, such as the pixels of an image, some of which hardly ever vary.
    likelihood : {"gaussian", "heteroscedastic", "student_t", "poisson"}, default="gaussian"
        The distribution of a target around the output of the network (around its exponential for "poisson").
        "heteroscedastic" is a Gaussian whose noise is a function of the input, learned like the mean.
    noise : float or sequence, default=None
        A fixed noise level, in the units of the target, for "gaussian" and "student_t"; one number, or one per target.
        None learns it.
    noise_hold : float, default=None
        The part of training for which a learned noise level is held at its start. None does not hold it if the output
        layer is integrated. If every weight is drawn, None is 0.5 with an input kernel and 0.8 without.
    output_layer : {"auto", "exact", "inducing_rows", "pseudo_observations", "drawn"}, default="auto"
        How the posterior of the output layer is found. Given everything below it, the output layer is Gaussian and is
        integrated out: by "exact" (Gaussian noise, up to a size of 4,000), by "inducing_rows" (Gaussian noise, through
        `n_inducing_rows` rows), or by "pseudo_observations" (any likelihood, rows in batches). "drawn" draws the output
        weights with all the others, as the paper does. The size is that of the matrix that "exact" factors: rows times
        targets if the input kernel reaches the output layer, and otherwise the units of the last hidden layer (and its
        bias unit) times targets, for any number of rows. "auto" is "exact" up to a size of 1,200, "inducing_rows" up to
        50,000 rows, and "pseudo_observations" for more rows, for other likelihoods, and if a `batch_size` is given. It
        is "drawn" if `conditional` is "fitc" or "diag", if there are `residual_layers`, or if the last layer is
        mean-field.
    n_inducing_rows : int or "auto", default="auto"
        The number of inducing rows of the output layer. "auto" is 300 for Gaussian noise and 100 for other likelihoods,
        but not more than there are rows. Up to 1,000 rows of three or four classes it is 200 divided by the number of
        classes: there every class has a precision of its own at every row, which gives a higher bound.
    n_inducing : int or "auto", default="auto"
        The number of inducing codes of a GP whose weights are drawn and not all anchored. "auto" is 50, but not more
        than there are codes.
    conditional : {"pathwise", "fitc", "diag", "full"} or Conditional, default="pathwise"
        How weights are drawn, given the latent vectors and the inducing values.
    uncertain_hypers : bool or "auto", default="auto"
        Whether lengthscales, periods, scales and noise have a log-normal posterior instead of a point estimate, if the
        output layer is integrated. "auto" gives them one up to 50 rows (500 for likelihoods other than the Gaussian),
        where point estimates are overconfident.
    max_iter : int, default=3000
        The largest number of optimizer steps; those of candidates that "auto" does not take are not counted. With an
        integrated output layer, training ends when the bound no longer rises; if every weight is drawn, it takes all
        the steps. If the input kernel reaches the output layer, a fit with "exact" or "inducing_rows" has two phases
        from 200 rows (times targets) on, a coarse one through 96 inducing rows and a fine one, and each of them takes
        at most half of the steps. Without an input kernel, "exact" has two phases beyond 1,024 rows.
    batch_size : int or "auto", default="auto"
        The number of rows in a step. "auto" is all rows for "exact" and "inducing_rows" (fewer in the coarse phase,
        see `max_iter`); otherwise it is all rows up to 512, and 256 beyond.
    learning_rate_init : float or "auto", default="auto"
        The step size of Adam, which falls along a cosine once the bound is flat. "auto" is 0.2 if the output layer is
        integrated and a step sees all rows (0.1 if an input kernel reaches that layer, or if `fit` continues from the
        last fit), and 0.02 otherwise.
    optimizer : optax.GradientTransformation, default=None
        Another optimizer, with its own step size. Use one object for all fits: a new one is compiled again.
    n_train_draws : int or "auto", default="auto"
        The number of draws of the latent vectors in a step. "auto" is 1 with an integrated output layer and 4 without.
    n_weight_draws : int, default=1
        The number of draws of the weights for each draw of the latent vectors.
    n_predict_draws : int, default=128
        The number of functions that predictions draw; they are fixed when the fit ends. With an integrated output layer
        they come from an eighth as many draws of the layers below, and means, variances and densities need no drawn
        functions.
    n_restarts : int, default=0
        The number of further starts. All of them train side by side in one program, and the highest ELBO wins. A period
        that is not given starts from another peak of the spectrum each time.
    early_stopping : bool or "auto", default=False
        Whether to hold out `validation_fraction` of the rows and to stop when their score has not risen by `tol` for
        `n_iter_no_change` checks. There is a check every 100 steps. "auto" does so from 50 rows on.
    validation_fraction : float, default=0.1
        The part of the rows that is held out for early stopping.
    n_iter_no_change : int, default=5
        The number of checks without a rise after which training stops.
    tol : float, default=0.0
        The rise that counts. Without `early_stopping`, a `tol` above 0 stops training when the ELBO, in nats per row,
        has not risen by it.
    warm_start : bool, default=False
        Whether `fit` continues from the last fit.
    dtype : {"auto", "float32", "float64"}, default="auto"
        The type that training computes in; predictions are float64. "auto" is float64 if an output layer with Gaussian
        noise is integrated, and float32 otherwise.
    devices : int, "all" or None, default=None
        The devices that the rows of a step are spread over. None is one device; "all" includes the hosts of
        `jax.distributed`.
    random_state : int, RandomState or None, default=None
        Determines the start, the batches and the draws. With an int every fit gives the same result.
    verbose : bool, default=False
        Whether to show a progress bar with the ELBO and its terms on stderr.

    Attributes
    ----------
    model_ : metaprior.model.Model
        The fitted model.
    input_kernel_ : Kernel or None
        The fitted input kernel, in the units of the data.
    kernel_search_ : DataFrame
        The candidates of `input_kernel="auto"`, the highest first: `kernel`, `bound` (the ELBO in nats, the mean of the
        last steps of the search), `behind` (nats behind the one that was taken), `steps` and `taken`. A dict of columns
        if pandas is not installed.
    elbo_history_ : ndarray of shape (n_iter_,)
        The ELBO at every step, in nats. Larger is better.
    elbo_terms_ : dict of ndarray
        The terms of the ELBO: `log_likelihood`, `kl_z`, `kl_u` and, if the model has them, `kl_V`, `kl_w`, `kl_f`,
        `kl_theta`.
    n_iter_ : int
        The number of steps taken.
    converged_ : bool
        Whether training ended because the bound was flat, or a rule for early stopping ended it.
    n_roll_backs_ : int
        How often training turned non-finite and went on with smaller steps.
    jitter_ : float
        The largest relative jitter that a Cholesky factor took.

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
    input_kernel: Kernel | str | None = "auto"
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

    kernel_search_ = property(kernel_search_of)


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
    model_, input_kernel_, kernel_search_, elbo_history_, elbo_terms_, n_iter_ :
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
    input_kernel: Kernel | str | None = "auto"
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

    kernel_search_ = property(kernel_search_of)
