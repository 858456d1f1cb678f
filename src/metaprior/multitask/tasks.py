"""Tasks before training: checked and brought to units by an ordinary estimator of one task, then put side by side.

In one table a task's columns stand beside the next one's; where a task has fewer rows than the longest its targets
are NaN: not observed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from metaprior.estimators.base import Problem
from metaprior.estimators.checks import is_whole
from metaprior.estimators.metagp import MetaGPEstimator
from metaprior.model import Model
from metaprior.multitask.output import TasksOutput
from metaprior.weights.multitask import MultiTask

#: A task's name.
Name = str | int


@dataclass
class Task:
    """The estimator that will answer for a task, and what is to be fitted."""

    estimator: MetaGPEstimator
    problem: Problem

    @classmethod
    def opened(cls, estimator: MetaGPEstimator, X: Any, y: Any) -> "Task":
        """Check the data of a task; its inputs are in no units yet."""
        x, targets, likelihood, num_functions = estimator._taken(X, y)
        return cls(estimator, Problem(x, x, targets, likelihood, num_functions))

    def in_units(self, offset: np.ndarray, scale: np.ndarray) -> None:
        """Take the units of the inputs, which all tasks share."""
        self.estimator.x_offset_, self.estimator.x_scale_ = offset, scale
        self.problem = self.problem._replace(x_unit=self.estimator._in_units(self.problem.x))


def started_alike(starter: MetaGPEstimator, tasks: Sequence[Task], seed: int) -> list[Model]:
    """Return the tasks' models with the same unit latents, and with the regime and inducing rows of the longest."""
    starter.x_scale_ = tasks[0].estimator.x_scale_
    longest = max((task.problem for task in tasks), key=lambda problem: len(problem.x))
    starter.output_layer = starter._regime(len(longest.x), longest.num_functions)
    points = getattr(starter._started(longest, seed).output, "points", None)
    if points is not None:
        starter.n_inducing_rows = len(points)
    rng, least = np.random.default_rng([seed, 3]), 0 if points is None else len(points)
    return [starter._started(_lengthened(task.problem, least, rng), seed) for task in tasks]


def _lengthened(problem: Problem, num_rows: int, rng: np.random.Generator) -> Problem:
    """Return a problem with at least so many rows to start from: a short one has copies of its rows, a little off."""
    count = len(problem.x)
    rows = np.arange(max(num_rows, count)) % count
    off = 0.02 * rng.standard_normal((len(rows), problem.x.shape[1])) * (np.arange(len(rows)) >= count)[:, None]
    return problem._replace(x=problem.x[rows], x_unit=problem.x_unit[rows] + off, targets=problem.targets[rows])


def together(models: Sequence[Model]) -> Model:
    """Return one model of all tasks; likelihoods and regimes are stacked along a leading axis."""
    return Model(
        MultiTask.of([model.weights for model in models]),  # type: ignore[misc]
        models[0].network,
        jax.tree.map(lambda *leaves: np.stack(leaves), *[model.likelihood for model in models]),
        TasksOutput.of([model.output for model in models if model.output is not None]),
    )


def side_by_side(tasks: Sequence[Task]) -> Problem:
    """Return the rows of all tasks in one table; NaN where a task has no more targets."""
    problems = [task.problem for task in tasks]
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
    """Return tasks by name; those of a list are called 0, 1, ..."""
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
    """Say so where a name is neither text nor a whole number."""
    if not (isinstance(name, str) or is_whole(name)):
        raise ValueError(f"task: expected text or a whole number as the name of a task; got {name!r}.")
