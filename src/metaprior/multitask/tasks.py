"""Preparing tasks for training: each is prepared by an ordinary estimator of one task, then they are joined.

The columns of all tasks are placed side by side in one table. If a task has fewer rows than the longest one, its
missing targets are NaN, which means not observed.
"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from sklearn.base import clone

from metaprior.estimators.checks import is_whole
from metaprior.estimators.fit import InputScaling, PreparedFit, method_of
from metaprior.estimators.metagp_method import MetaGPMethod
from metaprior.estimators.method import Problem
from metaprior.model import Model
from metaprior.multitask.output import TasksOutput
from metaprior.output_layer import InducingRows, PseudoObservations
from metaprior.weights.multitask import MultiTask

#: The name of a task.
Name = str | int


def rescaled(task: PreparedFit, scaling: InputScaling) -> PreparedFit:
    """Return a task with its inputs standardised in the same way as those of all tasks."""
    problem = task.problem._replace(x_unit=scaling(task.problem.x), x_scale=scaling.scale)
    return task._replace(problem=problem, scaling=scaling)


def metagp_of_one(single: Any) -> MetaGPMethod:
    """Return the method of the estimator of one task."""
    method = method_of(single)
    assert isinstance(method, MetaGPMethod)
    return method


def started_alike(single: Any, problems: Sequence[Problem], seed: int) -> tuple[MetaGPMethod, list[Model]]:
    """Return a method, and models of the tasks with the same unit latents; `single` is an estimator of one task.

    All models have the regime and the number of inducing rows of the longest task.
    """
    method = metagp_of_one(single)
    longest = max(problems, key=lambda problem: problem.num_rows)
    changed: dict[str, Any] = {"output_layer": method.regime(longest)}
    output = metagp_of_one(clone(single).set_params(**changed)).initial_model(longest, seed).output
    points = output.points if isinstance(output, InducingRows | PseudoObservations) else ()
    if len(points):
        changed["n_inducing_rows"] = len(points)
    starter = metagp_of_one(clone(single).set_params(**changed))
    rng = np.random.default_rng([seed, 3])
    return method, [starter.initial_model(_lengthened(problem, len(points), rng), seed) for problem in problems]


def _lengthened(problem: Problem, num_rows: int, rng: np.random.Generator) -> Problem:
    """Return a problem with at least `num_rows` rows; if it has too few, copies with a little noise are added."""
    count = len(problem.x)
    rows = np.arange(max(num_rows, count)) % count
    off = 0.02 * rng.standard_normal((len(rows), problem.x.shape[1])) * (np.arange(len(rows)) >= count)[:, None]
    return problem._replace(x=problem.x[rows], x_unit=problem.x_unit[rows] + off, targets=problem.targets[rows])


def together(models: Sequence[Model]) -> Model:
    """Return one model of all tasks, with likelihoods and regimes stacked along a leading axis."""
    return Model(
        MultiTask.of([model.weights for model in models]),  # type: ignore[misc]
        models[0].network,
        jax.tree.map(lambda *leaves: np.stack(leaves), *[model.likelihood for model in models]),
        TasksOutput.of([model.output for model in models if model.output is not None]),
    )


def side_by_side(problems: Sequence[Problem]) -> Problem:
    """Return the rows of all tasks in one table, with NaN for targets that a task does not have."""
    num_rows = max(len(problem.x) for problem in problems)

    def joined(parts: list[np.ndarray], filler: float = 0.0) -> np.ndarray:
        missing = [((0, num_rows - len(part)), (0, 0)) for part in parts]
        return np.hstack([np.pad(p, m, constant_values=filler) for p, m in zip(parts, missing, strict=True)])

    return problems[0]._replace(
        x=joined([problem.x for problem in problems]),
        x_unit=joined([problem.x_unit for problem in problems]),
        targets=joined([problem.targets for problem in problems], np.nan),
    )


def named_tasks(tasks: Any) -> dict[Name, tuple[Any, Any]]:
    """Return the tasks by name; the tasks of a list are called 0, 1, ..."""
    found = tasks if isinstance(tasks, dict) else dict(enumerate(tasks)) if isinstance(tasks, list | tuple) else {}
    pairs = all(isinstance(data, list | tuple) and len(data) == 2 for data in found.values())
    if not found or not pairs:
        raise ValueError(
            "fit: expected at least one task, as a dict of name to (X, y) or a list of pairs (X, y); got "
            f"{type(tasks).__name__} {str(tasks):.80}."
        )
    for name in found:
        check_name(name)
    return found


def check_name(name: object) -> None:
    """Raise an error if a name is neither text nor a whole number."""
    if not (isinstance(name, str) or is_whole(name)):
        raise ValueError(f"task: expected text or a whole number as the name of a task; got {name!r}.")
