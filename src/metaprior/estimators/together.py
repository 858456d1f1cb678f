"""Fits side by side: estimators of one configuration (seeds, splits, restarts) trained in one compiled program."""

from collections.abc import Sequence
from typing import Any

import jax

from metaprior.estimators.base import Job, TrainedEstimator
from metaprior.estimators.phases import joined_fits, usual_phase
from metaprior.estimators.progress import progress_bar
from metaprior.inference import Fit, train_many
from metaprior.random import make_key


def fit_together(estimators: Sequence[Any], data: Sequence[tuple[Any, Any]]) -> None:
    """Fit estimators that differ in their seed and their data only, all at once.

    Every one ends as its own `fit` would leave it, up to rounding; on small networks it takes a fraction of the time.

    Parameters
    ----------
    estimators : list of estimators
        Of one class and with the same parameters but `random_state`.
    data : list of (X, y)
        One pair an estimator, of the same number of columns; the numbers of rows may differ.
    """
    if not estimators or len(estimators) != len(data):
        raise ValueError(f"expected as many (X, y) as estimators; got {len(data)} and {len(estimators)}.")
    first = estimators[0]
    for estimator in estimators:
        _check_alike(first, estimator)
    begun = [e._begun(*e._taken(*pair)) for e, pair in zip(estimators, data, strict=True)]
    jobs = [e._job(problem, seed) for e, (seed, problem) in zip(estimators, begun, strict=True)]
    for estimator, job, fit in zip(estimators, jobs, trained_together(first, jobs), strict=True):
        estimator._keep(fit, job.seed)


def trained_together(estimator: TrainedEstimator, jobs: Sequence[Job]) -> list[Fit]:
    """Run jobs as the estimator's parameters say."""
    kinds = {jax.tree.structure(job.model) for job in jobs}
    sizes = {tuple(leaf.shape for leaf in jax.tree.leaves(job.model)) for job in jobs}
    if len(kinds) > 1 or len(sizes) > 1:
        raise ValueError(
            "expected models of one shape; these differ (in the number of features, classes or inducing codes, or in "
            "their kernels): fit them one by one."
        )
    most = max(int(job.data.num_rows) for job in jobs)
    if len({len(job.phases) for job in jobs}) > 1:
        usual = usual_phase(estimator._recipe(most), estimator._settling(most))
        jobs = [job._replace(phases=[usual]) for job in jobs]
    models, fits = [job.model for job in jobs], list[list[Fit]]()
    with estimator._computing():
        for phases in zip(*[job.phases for job in jobs], strict=True):
            models = [phase.ready(model) for phase, model in zip(phases, models, strict=True)]
            with progress_bar(estimator.verbose) as listener:
                fits.append(
                    train_many(
                        models,
                        [job.data for job in jobs],
                        [make_key(job.seed) for job in jobs],
                        recipe=phases[0].recipe,
                        step_config=estimator._draws_a_step(most),
                        optimizer=estimator.optimizer,
                        listener=listener,
                        stop_when=[job.stop_when for job in jobs],
                        settling=phases[0].settling,
                    )
                )
            models = [fit.model for fit in fits[-1]]
    joined = [joined_fits(own) for own in zip(*fits, strict=True)]
    return [estimator._with_rows(fit, job.data) for fit, job in zip(joined, jobs, strict=True)]


def _check_alike(first: Any, other: Any) -> None:
    if not isinstance(other, TrainedEstimator) or not other._is_one_run:
        raise ValueError(f"expected estimators whose fit is one run of training; got {other!r}.")
    if type(other) is not type(first):
        raise ValueError(f"expected estimators of one class; got {type(first).__name__} and {type(other).__name__}.")
    own, others = (e.get_params(deep=False) for e in (first, other))
    differing = [name for name in own if name != "random_state" and repr(own[name]) != repr(others[name])]
    if differing:
        raise ValueError(f"expected the same parameters but random_state; {differing} differ.")
