"""The estimators of several tasks: fitted together, adapted to a new one, asked by the task's name.

The tasks' models are joined, trained as one, and taken apart again: what is kept is one ordinary fitted estimator a
task, which answers for it.
"""

import abc
import dataclasses
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import jax
import numpy as np
from sklearn.utils.validation import check_is_fitted, check_random_state

from metaprior.estimators import MetaGPClassifier, MetaGPRegressor
from metaprior.estimators.base import WARM_BEGINS, as_numpy
from metaprior.estimators.checks import expect
from metaprior.estimators.classifier import ClassifierPart
from metaprior.estimators.metagp import MetaGPEstimator
from metaprior.estimators.phases import usual_phase
from metaprior.estimators.regime import REGIMES
from metaprior.estimators.regressor import RegressorPart
from metaprior.estimators.renamed import accepts_old_names
from metaprior.inference import Fit
from metaprior.likelihoods import Bernoulli, Categorical
from metaprior.model import Model
from metaprior.multitask.start import likelihood_start, private_start
from metaprior.multitask.tasks import (
    Name,
    Task,
    check_name,
    named_tasks,
    side_by_side,
    started_alike,
    together,
)
from metaprior.predictive import Predictive
from metaprior.weights import MetaGP
from metaprior.weights.multitask import joined, split

#: The steps of a run whose end an adaptation is. What is solved for is near its optimum, and Adam's first steps are of
#: full size wherever it stands: fewer steps begin later, where they are small.
WHOLE_RUN = 100


@dataclass(eq=False, repr=False)
class MultiTaskEstimator(MetaGPEstimator):
    """The parameters and the machinery of both estimators; see `MultiTaskRegressor`."""

    _single: ClassVar[type[MetaGPEstimator]]

    _: KW_ONLY
    adapt_iter: int = 300

    def fit(self, tasks: Any) -> Self:
        """Fit all tasks together.

        Parameters
        ----------
        tasks : dict of name to (X, y), or list of (X, y)
            Names are text or whole numbers; tasks of a list are called 0, 1, ... Numbers of rows may differ.

        Returns
        -------
        self
        """
        self._check_parameters()
        opened = {name: Task.opened(self._of_one(), *data) for name, data in named_tasks(tasks).items()}
        rows = list(opened.values())
        self.n_features_in_ = rows[0].estimator.n_features_in_
        self._set_terms(rows)
        for name, task in opened.items():
            self._bring_to_terms(name, task)
        self.x_offset_, self.x_scale_ = self._units_of(np.concatenate([task.problem.x for task in rows]))
        for task in rows:
            task.in_units(self.x_offset_, self.x_scale_)
        seed = self._seed()
        fit = self._trained(together(started_alike(self._of_one(), rows, seed)), side_by_side(rows), seed)
        self._keep_tasks(fit, opened, seed)
        return self

    def _keep_tasks(self, fit: Fit, opened: dict[Name, Task], seed: int) -> None:
        """Keep the shared parts, every task's own estimator, and how the ELBO went."""
        self.shared_: MetaGP = as_numpy(fit.model).weights.common  # type: ignore[attr-defined]
        self.tasks_ = list(opened)
        self.estimators_ = {name: self._finished(task, fit, i, seed) for i, (name, task) in enumerate(opened.items())}
        self.n_iter_, self.elbo_history_ = fit.num_steps, fit.history["elbo"]
        self.elbo_terms_ = {name: values for name, values in fit.history.items() if name != "elbo"}

    def adapt(self, task: Name, X: Any, y: Any) -> Self:
        """Learn a new task by its private parts alone; the shared parts and all other tasks stay as they are.

        Given the shared parts, the posterior of the task's functions is a linear solve; at most `adapt_iter` steps of
        the optimiser move the task's hyper-parameters, and end when the bound is flat.

        Parameters
        ----------
        task : str or int
            A new name, or that of a task adapted before, which is then learned anew.
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self._check_parameters()
        check_name(task)
        if task in self.tasks_:
            raise ValueError(f"adapt: {task!r} is a task of the fit, {self.tasks_}; give the new task another name.")
        opened = Task.opened(self._of_one(), X, y)
        self._bring_to_terms(task, opened)
        opened.in_units(self.x_offset_, self.x_scale_)
        seed = self._seed()
        trainer = self._of_one(max_iter=int(self.adapt_iter))
        recipe = trainer._recipe(len(opened.problem.x))._replace(
            begins=max(WARM_BEGINS, 1 - self.adapt_iter / WHOLE_RUN)
        )
        phase = usual_phase(recipe, trainer._settling(len(opened.problem.x)))
        fit = trainer._trained(self._start_of(opened, seed), side_by_side([opened]), seed, phases=[phase])
        self.estimators_ = {**self.estimators_, task: self._finished(opened, fit, 0, seed)}
        return self

    def _start_of(self, task: Task, seed: int) -> Model:
        """Return the model of a new task alone, of which training moves the private parts only."""
        known: list[Any] = [self.estimators_[name].model_ for name in self.tasks_]
        asked = self.n_inducing_rows
        # the codes are not the task's own, and a short task may have fewer rows than the tasks of the fit
        few = asked if asked == "auto" else min(int(asked), len(task.problem.x))
        starter = self._of_one(n_inducing="auto", n_inducing_rows=few)
        starter.x_scale_ = self.x_scale_
        fresh: Any = starter._started(task.problem, seed)
        private = private_start(split(fresh.weights)[1], [split(model.weights)[1] for model in known])
        likelihood = likelihood_start(fresh.likelihood, [model.likelihood for model in known])
        alone: Any = together([Model(joined(self.shared_, private), fresh.network, likelihood, fresh.output)])
        return dataclasses.replace(alone, weights=alone.weights.with_shared_held())

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _of_one(self, **changed: Any) -> MetaGPEstimator:
        """Return an estimator of one task with the parameters of this one."""
        names = self._single().get_params(deep=False)
        params = {name: value for name, value in self.get_params(deep=False).items() if name in names}
        return self._single(**{**params, "uncertain_hypers": False, **changed})

    def _finished(self, task: Task, fit: Fit, index: int, seed: int) -> MetaGPEstimator:
        """Return the task's estimator, fitted: its own part of the fit with the shared parts."""
        model: Any = as_numpy(fit.model)
        private, likelihood = jax.tree.map(lambda leaf: leaf[index], (model.weights.private, model.likelihood))
        own = Model(joined(self.shared_, private), model.network, likelihood, model.output.task(index))
        task.estimator._keep(fit._replace(model=own), seed)
        return task.estimator

    @abc.abstractmethod
    def _set_terms(self, tasks: list[Task]) -> None:
        """Say what the targets of all tasks have in common."""

    def _bring_to_terms(self, name: Name, task: Task) -> None:
        """Bring a task to what all tasks have in common, or say why it does not fit."""
        _expect_number(name, "features", self.n_features_in_, task.estimator.n_features_in_)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        expect(
            "warm_start", self.warm_start, "False with several tasks (a new one joins by `adapt`)", not self.warm_start
        )
        expect("n_restarts", self.n_restarts, "0 with several tasks", self._is_one_run)
        for name in ("mean_field_layers", "residual_layers"):
            layers = getattr(self, name)
            expect(name, layers, "None with several tasks (all their weights are the GP's)", layers is None)
        self._check_output_layer()

    def _check_output_layer(self) -> None:
        """Say so where a task's output layer cannot be integrated, or where more than that would be private."""
        expect(
            "uncertain_hypers",
            self.uncertain_hypers,
            "'auto' or False with several tasks, whose hyper-parameters are point estimates",
            self.uncertain_hypers is not True,
        )
        regimes = " or ".join(f"'{name}'" for name in REGIMES if name != "drawn")
        instead = f"for weights that are all drawn fit a {self._single.__name__} for every task"
        expect(
            "output_layer",
            self.output_layer,
            f"{regimes} with several tasks, whose output layers are integrated ({instead})",
            self.output_layer != "drawn",
        )
        expect(
            "conditional",
            self.conditional,
            f"'pathwise' or 'full' with several tasks, whose output layers are integrated ({instead})",
            self._is_integrated,
        )
        instead = "every task's output layer has a GP of its own"
        expect(
            "weight_gp",
            self.weight_gp,
            f"'auto' or 'per_layer' with several tasks: {instead}",
            self._weight_gp == "per_layer",
        )
        num_layers = len(np.atleast_1d(np.asarray(self.hidden_layer_sizes))) + 1
        local = self._layers_named("local_layers", self.local_layers, num_layers)
        expect(
            "local_layers",
            self.local_layers,
            "None or (-1,) with several tasks: the layers below the last are shared, and the input kernel is not",
            local is None or set(local) <= {num_layers - 1},
        )

    def _whole_numbers(self) -> list[tuple[str, int]]:
        return [*super()._whole_numbers(), ("adapt_iter", 0)]

    def estimator(self, task: Name) -> Any:
        """Return the fitted `MetaGPRegressor` (or `MetaGPClassifier`) that answers for a task."""
        check_is_fitted(self)
        if task not in self.estimators_:
            raise ValueError(f"task: expected one of {list(self.estimators_)}; got {task!r}.")
        return self.estimators_[task]

    def predict_distribution(self, X: Any, *, task: Name) -> Predictive:  # type: ignore[override]
        """Return the predictive distribution of a task at X: mean, variances, quantiles, entropy, log density, draws.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        task : str or int
            A name of `estimators_`.

        Returns
        -------
        Predictive
        """
        return self.estimator(task).predict_distribution(X)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0, *, task: Name) -> np.ndarray:  # type: ignore[override]
        """Draw functions of a task, coherent over the rows of X; with one `random_state` tasks share what is below.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples), (n_samples_X, n_targets, n_samples) for several targets or
        (n_samples_X, n_classes, n_samples), class probabilities, for a classifier
        """
        return self.estimator(task).sample_y(X, n_samples, random_state)

    def score(self, X: Any, y: Any, *, task: Name) -> float:
        """Return scikit-learn's score of a task: R^2 for regression, accuracy for classes."""
        return self.estimator(task).score(X, y)

    def _saved_state(self) -> dict[str, Any]:
        state = super()._saved_state()
        answering = state.pop("estimators_")
        # the keys of a file's dicts are text, names may be numbers: lists
        return {**state, "names": list(answering), "answering": list(answering.values())}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore({name: value for name, value in state.items() if name not in ("names", "answering")})
        self.estimators_ = dict(zip(state["names"], state["answering"], strict=True))


@accepts_old_names
@dataclass(eq=False, repr=False)
class MultiTaskRegressor(MultiTaskEstimator, RegressorPart, MetaGPEstimator):  # type: ignore[misc]
    """Regression on several related tasks by networks that share everything below their output layers.

    Unit latents, the weights below the output layer, code kernels and the layers' scales are learned from all tasks.
    The output layer, integrated out, its weight noise, the input kernel (and projection) and the observation noise are
    each task's own. Inputs are standardised over all tasks together, targets task by task; everything given or answered
    is in the units of the data.

    Parameters that are not named here are those of `metaprior.MetaGPRegressor`; `warm_start` must stay False,
    `n_restarts` 0, `mean_field_layers` and `residual_layers` None, and `conditional` "pathwise" or "full".

    Parameters
    ----------
    adapt_iter : int, default=300
        Steps of the optimiser at most when a new task is adapted to; they move its hyper-parameters (and its
        pseudo-observations) alone. With 0 the new task is a linear solve, with the hyper-parameters at the mean of the
        tasks of the fit.
    max_iter : int, default=3000
        Steps of the optimiser at most when tasks are fitted together; training ends when the bound no longer rises.
    output_layer : {"auto", "exact", "inducing_rows", "pseudo_observations"}, default="auto"
        How the output layers are integrated. All tasks of a fit have the same regime, by the size of the longest task.
    weight_gp : {"auto", "per_layer"}, default="auto"
        One GP per layer: every task's output layer has its own.
    local_layers : sequence of int, default=None
        None or (-1,): the input kernel is each task's own and cannot reach the layers that are shared.
    uncertain_hypers : bool or "auto", default="auto"
        Must not be True: hyper-parameters of several tasks are point estimates.
    batch_size : int or "auto", default="auto"
        Rows of every task in a step, by the size of the longest task.

    Attributes
    ----------
    estimators_ : dict of name to MetaGPRegressor
        The fitted estimator of every task; its ELBO is that of the fit or of the adaptation it came from.
    tasks_ : list
        The names of the tasks that were fitted together.
    shared_ : metaprior.weights.MetaGP
        The shared parts, a model with holes in the places of the private ones.
    elbo_history_, elbo_terms_, n_iter_ :
        Of the joint fit, as for `MetaGPRegressor`; `kl_z` and `kl_u` are of the shared parts and count once.

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

    _single = MetaGPRegressor

    def predict(  # type: ignore[override]
        self, X: Any, *, task: Name, return_std: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Predict the mean of a task's y, and its standard deviation (function and noise) if asked.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        task : str or int
            A name of `estimators_`.
        return_std : bool, default=False

        Returns
        -------
        mean, or (mean, std) : ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        return self.estimator(task).predict(X, return_std=return_std)

    def _set_terms(self, tasks: list[Task]) -> None:
        self.n_outputs_ = tasks[0].problem.targets.shape[1]

    def _bring_to_terms(self, name: Name, task: Task) -> None:
        super()._bring_to_terms(name, task)
        _expect_number(name, "targets", self.n_outputs_, task.problem.targets.shape[1])


@accepts_old_names
@dataclass(eq=False, repr=False)
class MultiTaskClassifier(MultiTaskEstimator, ClassifierPart, MetaGPEstimator):  # type: ignore[misc]
    """Classification on several related tasks by networks that share everything below their output layers.

    The classes are those of all tasks of the fit; a task may lack some of them. Labels that correspond to one another
    should have one name in all tasks. What is shared and what is private: see `MultiTaskRegressor`. Parameters that
    are not named there are those of `metaprior.MetaGPClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    estimators_, tasks_, shared_, elbo_history_, elbo_terms_, n_iter_ :
        As for `MultiTaskRegressor`.
    """

    _single = MetaGPClassifier

    def predict_proba(self, X: Any, *, task: Name) -> np.ndarray:  # type: ignore[override]
        """Return a task's class probabilities, [n_samples, n_classes], in the order of `classes_`."""
        return self.estimator(task).predict_proba(X)

    def predict(self, X: Any, *, task: Name) -> np.ndarray:  # type: ignore[override]
        """Return the most probable class of every row."""
        return self.estimator(task).predict(X)

    def _set_terms(self, tasks: list[Task]) -> None:
        self.classes_ = np.unique(np.concatenate([task.estimator.classes_ for task in tasks]))

    def _bring_to_terms(self, name: Name, task: Task) -> None:
        """Number the task's labels as all tasks' are."""
        super()._bring_to_terms(name, task)
        place = {label: number for number, label in enumerate(self.classes_.tolist())}
        own = task.estimator.classes_.tolist()
        if any(label not in place for label in own):
            raise ValueError(f"task {name!r}: expected labels of {list(place)}; got {own}.")
        labels = np.array([place[label] for label in own])[task.problem.targets[:, 0].astype(int)]
        two = len(place) == 2
        task.problem = task.problem._replace(
            targets=labels[:, None].astype(np.float64),
            likelihood=Bernoulli() if two else Categorical(),
            num_functions=1 if two else len(place),
        )
        task.estimator.classes_ = self.classes_


def _expect_number(name: Name, what: str, expected: int, got: int) -> None:
    if got != expected:
        raise ValueError(f"task {name!r}: expected {expected} {what}, as the other tasks have; got {got}.")
