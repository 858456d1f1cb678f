"""Estimators of several tasks: they fit tasks together, adapt to a new task, and predict for a task by its name.

The models of the tasks are joined, trained as one model, and separated again. The result is one ordinary fitted
estimator per task, which makes its predictions.
"""

import abc
import dataclasses
import os
from collections.abc import Mapping
from typing import Any, Self

import jax
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, check_random_state

from metaprior.estimators.base import Estimator
from metaprior.estimators.checks import expect_whole
from metaprior.estimators.fit import InputScaling, PreparedFit, prepare_fit, store_fit
from metaprior.estimators.metagp_method import MetaGPMethod
from metaprior.estimators.method import WARM_BEGINS
from metaprior.estimators.phases import usual_phase
from metaprior.estimators.renamed import without_old_names
from metaprior.estimators.restored import check_names, check_units
from metaprior.estimators.stopping import as_numpy
from metaprior.inference import Fit
from metaprior.io.saving import save
from metaprior.kernels.base import with_changed_kernels
from metaprior.model import Model
from metaprior.multitask.checks import check_parameters
from metaprior.multitask.start import likelihood_start, private_start
from metaprior.multitask.tasks import (
    Name,
    check_name,
    metagp_of_one,
    named_tasks,
    rescaled,
    side_by_side,
    started_alike,
    together,
)
from metaprior.predictive import Predictive
from metaprior.user_warnings import one_fit
from metaprior.weights import MetaGP
from metaprior.weights.multitask import MultiTask as SharedWeights
from metaprior.weights.multitask import joined, split

#: An adaptation with fewer steps is the end of a run of so many. The solved parts are near their optimum, but Adam's
#: first steps have full size wherever it starts. So an adaptation starts late in the schedule, where steps are small.
WHOLE_RUN = 100


class MultiTask(BaseEstimator, abc.ABC):
    """The common base of the two estimators of several tasks."""

    random_state: int | np.random.RandomState | None
    input_scaling: str
    n_inducing_rows: int | str
    adapt_iter: int
    shared_: MetaGP
    tasks_: list[Name]
    estimators_: dict[Name, Estimator]
    n_features_in_: int

    @abc.abstractmethod
    def _single(self) -> type[Any]:
        """Return the class of the estimator of one task."""

    @abc.abstractmethod
    def _common_terms(self, tasks: Mapping[Name, PreparedFit]) -> dict[str, Any]:
        """Return the fitted attributes that describe what all tasks have in common."""

    @abc.abstractmethod
    def _on_terms(self, name: Name, task: PreparedFit, terms: Mapping[str, Any]) -> PreparedFit:
        """Return a task in agreement with the attributes in `terms`, or raise an error if that is not possible."""

    @one_fit()
    def fit(self, tasks: Any) -> Self:
        """Fit all tasks together.

        Parameters
        ----------
        tasks : dict of name to (X, y), or list of (X, y)
            Names are text or whole numbers; the tasks of a list are called 0, 1, ... Tasks may differ in size.

        Returns
        -------
        self
        """
        self._check_parameters()
        singles = {name: self._of_one() for name in named_tasks(tasks)}
        prepared = {
            name: prepare_fit(singles[name], *data, joins_equal_rows=False) for name, data in named_tasks(tasks).items()
        }
        terms = self._common_terms(prepared)
        prepared = {name: self._checked_task(name, task, terms) for name, task in prepared.items()}
        scaling = InputScaling.of(np.concatenate([task.problem.x for task in prepared.values()]), self.input_scaling)
        prepared = {name: rescaled(task, scaling) for name, task in prepared.items()}
        problems = [task.problem for task in prepared.values()]
        seed = self._seed()
        method, models = started_alike(self._of_one(), problems, seed)
        table = side_by_side(problems)
        fit = method.train(method.job(table, seed, together(models)), table)
        self._store(fit, singles, prepared, {**terms, **scaling.attributes()}, seed)
        return self

    def _checked_task(self, name: Name, task: PreparedFit, terms: Mapping[str, Any]) -> PreparedFit:
        if "date_origins_" in task.columns:
            raise ValueError(
                f"task {name!r}: expected numbers; got dates, whose first one differs between tasks. Give days."
            )
        expect_number(name, "features", terms["n_features_in_"], task.problem.x.shape[1])
        return self._on_terms(name, task, terms)

    def _store(
        self,
        fit: Fit,
        singles: dict[Name, Any],
        prepared: dict[Name, PreparedFit],
        attributes: dict[str, Any],
        seed: int,
    ) -> None:
        """Store the shared parts, the estimator of every task, and the history of the ELBO."""
        weights = as_numpy(fit.model).weights
        assert isinstance(weights, SharedWeights)
        for index, (name, task) in enumerate(prepared.items()):
            _store_task(singles[name], task, fit, index, weights.common, seed)
        terms = {name: values for name, values in fit.history.items() if name != "elbo"}
        history = {"n_iter_": fit.num_steps, "elbo_history_": fit.history["elbo"], "elbo_terms_": terms}
        fitted = {"shared_": weights.common, "tasks_": list(singles), "estimators_": singles}
        self.__dict__.update({**attributes, **history, **fitted})

    def adapt(self, task: Name, X: Any, y: Any) -> Self:
        """Learn the private parts of a new task; the shared parts and all other tasks do not change.

        Given the shared parts, the posterior of the task's functions is a linear solve. The optimizer takes at most
        `adapt_iter` steps to learn the task's hyper-parameters, and stops earlier if the bound is flat.

        Parameters
        ----------
        task : str or int
            A new name, or the name of a task that was adapted before and is then learned again.
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
            raise ValueError(f"adapt: expected a new name, not one of the fitted tasks {self.tasks_}; got {task!r}.")
        single, scaling = self._of_one(), InputScaling(self.x_offset_, self.x_scale_)
        prepared = rescaled(
            self._checked_task(task, prepare_fit(single, X, y, joins_equal_rows=False), vars(self)), scaling
        )
        seed, table = self._seed(), side_by_side([prepared.problem])
        method = metagp_of_one(self._of_one(max_iter=int(self.adapt_iter)))
        begins = max(WARM_BEGINS, 1 - self.adapt_iter / WHOLE_RUN)
        start = self._start_of(prepared, seed)
        recipe = method.recipe(prepared.problem._replace(last=start))._replace(begins=begins)
        job = method.job(table, seed, start)
        phase = usual_phase(recipe, method.settling(prepared.problem))
        fit = method.train(job._replace(phases=[phase]), table)
        _store_task(single, prepared, fit, 0, self.shared_, seed)
        self.estimators_ = {**self.estimators_, task: single}
        return self

    def _start_of(self, task: PreparedFit, seed: int) -> Model:
        """Return the model of a new task, in which training changes only the private parts."""
        known: list[Any] = [self.estimators_[name].model_ for name in self.tasks_]
        asked = self.n_inducing_rows
        # The codes are shared, and a short task may have fewer rows than the tasks of the fit.
        few = asked if asked == "auto" else min(int(asked), task.problem.num_rows)
        starter = metagp_of_one(self._of_one(n_inducing="auto", n_inducing_rows=few))
        fresh: Any = starter.initial_model(task.problem, seed)
        private = private_start(split(fresh.weights)[1], [split(model.weights)[1] for model in known])
        likelihood = likelihood_start(fresh.likelihood, [model.likelihood for model in known])
        alone: Any = together([Model(joined(self.shared_, private), fresh.network, likelihood, fresh.output)])
        return dataclasses.replace(alone, weights=alone.weights.with_shared_held())

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _of_one(self, **changed: Any) -> Any:
        """Return an estimator of one task with the parameters of this estimator."""
        single = self._single()
        names = single().get_params(deep=False)
        params = {name: value for name, value in self.get_params(deep=False).items() if name in names}
        return single(**{**params, "uncertain_hypers": False, **changed})

    def _check_parameters(self) -> None:
        check_parameters(self.get_params(deep=False), metagp_of_one(self._of_one()), self._single().__name__)
        expect_whole("adapt_iter", self.adapt_iter, 0)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, by their current names or, for one release, their old ones; see `Estimator.set_params`."""
        present = without_old_names(params)
        return super().set_params(**with_changed_kernels(self.get_params(deep=False), present))

    def estimator(self, task: Name) -> Any:
        """Return the fitted `MetaGPRegressor` (or `MetaGPClassifier`) of a task."""
        check_is_fitted(self)
        if task not in self.estimators_:
            raise ValueError(f"task: expected one of {list(self.estimators_)}; got {task!r}.")
        return self.estimators_[task]

    def predict_distribution(self, X: Any, *, task: Name) -> Predictive:
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

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0, *, task: Name) -> np.ndarray:
        """Draw functions of a task, coherent over the rows of X; with the same `random_state` tasks share z and u.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples), (n_samples_X, n_targets, n_samples) for several targets or
        (n_samples_X, n_classes, n_samples), class probabilities, for a classifier
        """
        return self.estimator(task).sample_y(X, n_samples, random_state)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write all tasks to one file, without pickle; `metaprior.load` reads it.

        Parameters
        ----------
        path : str or path
            For instance "tasks.metaprior".
        overwrite : bool, default=False
            Whether an existing file may be replaced.
        """
        check_is_fitted(self)
        save(self, path, overwrite=overwrite)

    def saved_state(self) -> dict[str, Any]:
        """Return the fitted attributes, in parts that can be saved."""
        parameters = self.get_params(deep=False)
        state = {name: value for name, value in vars(self).items() if name not in parameters}
        answering = state.pop("estimators_")
        # Lists, because the keys of a dict in a file are text, and names may be numbers.
        return {**state, "names": list(answering), "answering": list(answering.values())}

    def restore_state(self, state: dict[str, Any]) -> None:
        """Restore the fitted attributes from the result of `saved_state`, or raise an error if they are not such."""
        attributes = {name: value for name, value in state.items() if name not in ("names", "answering")}
        check_names(self, attributes)
        self.__dict__.update(attributes)
        self.estimators_ = dict(zip(state["names"], state["answering"], strict=True))
        self._check_restored()

    def _check_restored(self) -> None:
        """Raise an error unless every task has a fitted estimator of its own for the same columns."""
        self._check_parameters()
        check_units("x_offset_", self.x_offset_, "x_scale_", self.x_scale_, self.n_features_in_)
        for name, single in self.estimators_.items():
            check_name(name)
            if not isinstance(single, self._single()) or vars(single).get("n_features_in_") != self.n_features_in_:
                raise ValueError(f"task {name!r}: expected a fitted {self._single().__name__} of the same columns")
        are_known = isinstance(self.tasks_, list) and bool(self.tasks_) and set(self.tasks_) <= set(self.estimators_)
        if not isinstance(self.shared_, MetaGP) or not are_known:
            raise ValueError("expected the shared parts, and an estimator for every fitted task")


def _store_task(single: Any, task: PreparedFit, fit: Fit, index: int, shared: MetaGP, seed: int) -> None:
    """Store the fit of one task in its estimator: its private parts, joined with the shared parts."""
    model: Any = as_numpy(fit.model)
    private, likelihood = jax.tree.map(lambda leaf: leaf[index], (model.weights.private, model.likelihood))
    own = Model(joined(shared, private), model.network, likelihood, model.output.task(index))
    assert isinstance(task.method, MetaGPMethod)
    store_fit(single, task, task.method.attributes(fit._replace(model=own), task.problem, seed))


def expect_number(name: Name, what: str, expected: int, got: int) -> None:
    """Raise an error if a task does not have the same number of features or targets as the others."""
    if got != expected:
        raise ValueError(f"task {name!r}: expected {expected} {what}, as the other tasks have; got {got}.")
