"""Fits side by side: estimators of one configuration (seeds, splits, restarts) trained in one compiled program."""

from collections.abc import Sequence

import jax

from metaprior.estimators.method import Job, Problem, TrainedMethod
from metaprior.estimators.phases import joined_fits, usual_phase
from metaprior.estimators.progress import progress_bar
from metaprior.inference import Fit, train_many
from metaprior.random import make_key


def train_together(method: TrainedMethod, jobs: Sequence[Job], problems: Sequence[Problem]) -> list[Fit]:
    """Run the jobs of some problems as one method says."""
    _check_shapes(jobs)
    longest = max(problems, key=lambda problem: problem.num_rows)
    if len({len(job.phases) for job in jobs}) > 1:
        usual = usual_phase(method.recipe(longest), method.settling(longest))
        jobs = [job._replace(phases=[usual]) for job in jobs]
    models, fits = [job.model for job in jobs], list[list[Fit]]()
    with method.computing():
        for phases in zip(*[job.phases for job in jobs], strict=True):
            models = phases[0].ready(models, [job.data for job in jobs])
            with progress_bar(method.training.verbose) as listener:
                fits.append(
                    train_many(
                        models,
                        [job.data for job in jobs],
                        [make_key(job.seed) for job in jobs],
                        recipe=phases[0].recipe,
                        step_config=phases[0].step_config(method.step_config(longest), longest.num_rows),
                        optimizer=method.training.optimizer,
                        listener=listener,
                        stop_when=[job.stop_when for job in jobs],
                        settling=phases[0].settling,
                    )
                )
            fits[-1] = [fit._replace(model=phases[0].ended(fit.model)) for fit in fits[-1]]
            models = [fit.model for fit in fits[-1]]
    joined = [joined_fits(own) for own in zip(*fits, strict=True)]
    return [method.with_rows(fit, job.data) for fit, job in zip(joined, jobs, strict=True)]


def _check_shapes(jobs: Sequence[Job]) -> None:
    kinds = {jax.tree.structure(job.model) for job in jobs}
    sizes = {tuple(leaf.shape for leaf in jax.tree.leaves(job.model)) for job in jobs}
    if len(kinds) > 1 or len(sizes) > 1:
        raise ValueError(
            "expected models of one shape; these differ (in the number of features, classes or inducing codes, or in "
            "their kernels): fit them one by one."
        )
