"""The estimators of several tasks, for regression and for classification."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import optax
from sklearn.base import ClassifierMixin, RegressorMixin

from metaprior.estimators import MetaGPClassifier, MetaGPRegressor
from metaprior.estimators.documented import documented_like
from metaprior.estimators.fit import PreparedFit
from metaprior.estimators.renamed import accepts_old_names
from metaprior.estimators.targets import ClassTargets
from metaprior.inputs import Projection
from metaprior.kernels import Kernel
from metaprior.multitask.base import MultiTask, expect_number
from metaprior.multitask.tasks import Name
from metaprior.weight_gp import Conditional


@accepts_old_names
@documented_like(MetaGPRegressor)
@dataclass(eq=False, repr=False)
class MultiTaskRegressor(RegressorMixin, MultiTask):
    """Regression on several related tasks by networks that share everything below their output layers.

    The unit latents, the weights below the output layer, the code kernels and the scales of the layers are learned from
    all tasks. Each task has its own output layer (integrated out) with its weight noise, its own input kernel (and
    projection) and its own observation noise. Inputs are standardised over all tasks together, and targets for each
    task separately. All arguments and results are in the units of the data.

    Some parameters of `metaprior.MetaGPRegressor` are restricted here: `warm_start` must be False, `n_restarts` 0,
    `mean_field_layers` and `residual_layers` None, and `conditional` "pathwise" or "full".

    Parameters
    ----------
    adapt_iter : int, default=300
        The maximal number of optimizer steps in `adapt`, which learn only hyper-parameters (and pseudo-observations) of
        the new task. With 0, adapting is a linear solve, with hyper-parameters at the mean of the fitted tasks.
    input_kernel : Kernel, str or None, default=None
        The input kernel of every task, each with hyper-parameters of its own. None gives the global model. "auto" is
        not offered: fit one `MetaGPRegressor` to a typical task, and give the kernel that it takes.
    max_iter : int, default=3000
        The maximal number of optimizer steps in `fit`; training ends earlier if the bound no longer rises.
    output_layer : {"auto", "exact", "inducing_rows", "pseudo_observations"}, default="auto"
        How the output layers are integrated out. All tasks have the same regime, which "auto" chooses as a
        `MetaGPRegressor` would for the longest task.
    weight_gp : {"auto", "per_layer"}, default="auto"
        Each layer has its own GP, because every task has its own output layer.
    local_layers : sequence of int, default=None
        None or (-1,), because each task has its own input kernel, which shared layers cannot use.
    uncertain_hypers : bool or "auto", default="auto"
        Must not be True, because the hyper-parameters of several tasks are point estimates.
    batch_size : int or "auto", default="auto"
        The number of rows of every task in a step; "auto" chooses it by the number of rows of the longest task.

    Attributes
    ----------
    estimators_ : dict of name to MetaGPRegressor
        The fitted estimator of every task. Its ELBO is that of the joint fit, or of the adaptation.
    tasks_ : list
        The names of the tasks that were fitted together.
    shared_ : metaprior.weights.MetaGP
        The shared parts, as a model with None in place of the private parts.
    elbo_history_, elbo_terms_, n_iter_ :
        For the joint fit, as in `MetaGPRegressor`; `kl_z` and `kl_u` belong to the shared parts and count once.

    Examples
    --------
    >>> import numpy as np
    >>> from metaprior import kernels
    >>> from metaprior.multitask import MultiTaskRegressor
    >>> x = np.linspace(-2, 2, 80)[:, None]
    >>> tasks = {f"wave {k}": (x, np.sin(k * x[:, 0])) for k in (2, 3, 5, 6)}
    >>> model = MultiTaskRegressor(input_kernel=kernels.Periodic(), random_state=0).fit(tasks)
    >>> model = model.adapt("wave 4", x, np.sin(4 * x[:, 0]))
    >>> mean, std = model.predict(x + 4, task="wave 4", return_std=True)
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
    adapt_iter: int = 300
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

    def predict(
        self, X: Any, *, task: Name, return_std: bool = False, return_cov: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Predict the mean of y for a task and, if asked, its standard deviation or joint covariance, noise and all.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        task : str or int
            A name of `estimators_`.
        return_std, return_cov : bool, default=False
            As for `MetaGPRegressor.predict`.

        Returns
        -------
        mean, (mean, std) or (mean, covariance) : ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        return self.estimator(task).predict(X, return_std=return_std, return_cov=return_cov)

    def score(self, X: Any, y: Any, *, task: Name) -> float:
        """Return R^2 of a task."""
        return self.estimator(task).score(X, y)

    def _single(self) -> type[MetaGPRegressor]:
        return MetaGPRegressor

    def _common_terms(self, tasks: Mapping[Name, PreparedFit]) -> dict[str, Any]:
        first = next(iter(tasks.values())).problem
        return {"n_features_in_": first.x.shape[1], "n_outputs_": first.targets.shape[1]}

    def _on_terms(self, name: Name, task: PreparedFit, terms: Mapping[str, Any]) -> PreparedFit:
        expect_number(name, "targets", terms["n_outputs_"], task.problem.targets.shape[1])
        return task


@accepts_old_names
@documented_like(MultiTaskRegressor)
@dataclass(eq=False, repr=False)
class MultiTaskClassifier(ClassifierMixin, MultiTask):
    """Classification on several related tasks by networks that share everything below their output layers.

    The classes are those of all tasks of the fit; a task may lack some of them. Labels with the same meaning should
    have the same name in all tasks. `MultiTaskRegressor` describes which parts are shared. Parameters that are not
    described there are those of `metaprior.MetaGPClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    estimators_, tasks_, shared_, elbo_history_, elbo_terms_, n_iter_ :
        As for `MultiTaskRegressor`.
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
    adapt_iter: int = 300
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

    def predict_proba(self, X: Any, *, task: Name) -> np.ndarray:
        """Return the class probabilities for a task, [n_samples, n_classes], in the order of `classes_`."""
        return self.estimator(task).predict_proba(X)

    def predict(self, X: Any, *, task: Name) -> np.ndarray:
        """Return the most probable class of every row."""
        return self.estimator(task).predict(X)

    def score(self, X: Any, y: Any, *, task: Name) -> float:
        """Return the accuracy of a task."""
        return self.estimator(task).score(X, y)

    def _single(self) -> type[MetaGPClassifier]:
        return MetaGPClassifier

    def _common_terms(self, tasks: Mapping[Name, PreparedFit]) -> dict[str, Any]:
        classes = np.unique(np.concatenate([_class_targets(task).classes for task in tasks.values()]))
        first = next(iter(tasks.values())).problem
        return {"n_features_in_": first.x.shape[1], "classes_": classes}

    def _on_terms(self, name: Name, task: PreparedFit, terms: Mapping[str, Any]) -> PreparedFit:
        """Return the task with its labels numbered in the order of `classes_`."""
        own, kind = _class_targets(task).classes, ClassTargets(terms["classes_"])
        if not set(own.tolist()) <= set(kind.classes.tolist()):
            raise ValueError(f"task {name!r}: expected labels of {kind.classes.tolist()}; got {own.tolist()}.")
        targets = kind.standardised(own[task.problem.targets[:, 0].astype(int)])
        likelihood = kind.likelihood(task.problem.x, targets, task.method)
        functions = kind.num_functions(likelihood)
        problem = task.problem._replace(targets=targets, likelihood=likelihood, num_functions=functions, kind=kind)
        return task._replace(problem=problem)


def _class_targets(task: PreparedFit) -> ClassTargets:
    assert isinstance(task.problem.kind, ClassTargets)
    return task.problem.kind
