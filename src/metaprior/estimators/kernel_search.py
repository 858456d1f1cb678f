"""`input_kernel="auto"`: candidates are trained side by side for a bounded number of steps, and the bound decides.

Most steps of a fit find the layers below the output and the noise, which all candidates share. So the RBF is trained
first, and every other candidate goes on from there with its own kernel for as many steps as the RBF does. The global
model, whose layers below have to say everything, begins anew, and so does a kernel on a projection of wide inputs. All
of them see the same rows, the same draws and the same regime, so that differences of their bounds are far less noisy
than the bounds. Those that are close to the highest go on once more, or up to three times where there are waves. The
fit then continues from where the taken one has come to.

Hyper-parameters that are point estimates cost nothing in the bound, so a richer kernel is a little too high. So the
first candidate is taken that the highest is not clearly above: by more than `MARGIN` nats, and by more than twice the
standard error of the difference over the steps that count, which is large where a step sees few of the rows. The RBF is
the first of all. With equal bounds it is the safer choice: far from the data it returns to the prior.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

from metaprior.estimators.candidates import Candidate
from metaprior.estimators.phases import Phase, joined_fits
from metaprior.hypers import HyperPosterior, HyperPosteriorOfChosen
from metaprior.inference import Fit
from metaprior.kernels.chosen_sum import ChosenSum
from metaprior.model import Model, release_times
from metaprior.types import Fixed

#: Steps of the RBF before the others begin, of each candidate from there, and of those that are close once more. Bounds
#: are compared after 250 steps at the least: before that the global model, which has the least to learn, is often the
#: highest for a while.
SHARED_STEPS, OWN_STEPS = 200, 50
#: The last steps, whose bounds count, and the part of the steps in which the rate rises.
WINDOW, RISES = 25, 0.2
#: Candidates within so many nats of the highest bound are close; so many of them go on at the most.
CLOSE, FINALISTS = 10.0, 3
#: Nats per row within which they go on where there are waves, round by round. The RBF has learned nothing of a wave, so
#: bounds still rise by tens of nats: of 115 months of passengers one rises from 40 nats behind to 50 ahead.
WAVE_ROUNDS = (0.4, 0.4, 0.0)
#: What is told of the candidates.
COLUMNS = ("kernel", "bound", "behind", "steps", "taken")
#: Nats by which another candidate has to be above the RBF.
MARGIN = 2.0


class Outcome(NamedTuple):
    """A candidate with its training so far and its bound."""

    candidate: Candidate
    fit: Fit
    bounds: np.ndarray

    @classmethod
    def of(cls, candidate: Candidate, fits: Sequence[Fit]) -> "Outcome":
        """Return the candidate with its bounds at the last steps.

        The prior of the scale of a local layer is no part of the global model (see `MetaGP.kl`).
        """
        fit = joined_fits(fits)
        bounds = fit.history["elbo"]
        if candidate.is_global and "kl_scale" in fit.history:
            bounds = bounds + fit.history["kl_scale"]
        return cls(candidate, fit, np.asarray(bounds[-min(WINDOW, fits[-1].num_steps) :], np.float64))

    @property
    def bound(self) -> float:
        """The mean of the bounds."""
        return float(np.mean(self.bounds))


class Search(NamedTuple):
    """All candidates with their bounds, and the one that was taken."""

    outcomes: Sequence[Outcome]
    taken: Outcome

    def table(self) -> dict[str, np.ndarray]:
        """Return the candidates as columns, the highest bound first."""
        ordered = sorted(self.outcomes, key=lambda outcome: -outcome.bound)
        bounds = np.array([outcome.bound for outcome in ordered])
        return {
            "kernel": np.array([outcome.candidate.name for outcome in ordered], object),
            "bound": bounds,
            "behind": self.taken.bound - bounds,
            "steps": np.array([outcome.fit.num_steps for outcome in ordered]),
            "taken": np.array([float(outcome is self.taken) for outcome in ordered]),
        }


class Trainer(Protocol):
    """Trains a model for so many steps; `name` tells this run from the others."""

    def __call__(self, model: Model, num_steps: int, name: str) -> Fit: ...  # noqa: D102


def search_phase(phase: Phase) -> Phase:
    """Return the phase of a search, from the first one of a fit: its rate does not fall."""
    return phase._replace(recipe=phase.recipe._replace(decay_starts=1.0, rises=RISES), settling=None)


def goes_on(phase: Phase, candidate: Candidate) -> Phase:
    """Return the first phase of a fit that goes on from a search: with its program, so that none has to be compiled.

    The terms that were not taken cost a fifth of a step. The phase ends with the taken kernel alone.
    """
    return phase._replace(
        ready=lambda models, _: list(models), ended=lambda model: with_candidate(phase.ended(model), candidate)
    )


def goes_on_alone(phase: Phase, candidate: Candidate) -> Phase:
    """Return the same with the taken kernel alone from the start, for a phase of many steps."""
    return phase._replace(ready=lambda models, _: [with_candidate(model, candidate) for model in models])


def search(
    candidates: Sequence[Candidate],
    start: Callable[[Candidate], Model],
    train: Trainer,
    max_iter: int,
    num_rows: int,
) -> Search:
    """Train the candidates, the first of which is the RBF, and take one. A fit of few steps has a short search."""
    shared_steps, own_steps = max(1, min(SHARED_STEPS, max_iter // 10)), max(1, min(OWN_STEPS, max_iter // 20))
    shared = train(start(candidates[0]), shared_steps, "shared")
    outcomes = []
    for number, candidate in enumerate(candidates):
        own, name = start(candidate), f"candidate{number}"
        if candidate.begins_anew:
            before = train(own, shared_steps, f"{name}-before")
            fits = [before, train(before.model, own_steps, name)]
        else:
            fits = [shared, train(_after(shared.model, own, candidate), own_steps, name)]
        outcomes.append(Outcome.of(candidate, fits))
    rounds = WAVE_ROUNDS if any(candidate.has_waves for candidate in candidates) else (0.0,)
    for turn, per_row in enumerate(rounds):
        nats = max(CLOSE, per_row * num_rows)
        close = going_on([outcome.bounds for outcome in outcomes], nats)
        for place in close if len(close) > 1 else []:
            candidate, fit = outcomes[place].candidate, outcomes[place].fit
            longer = train(fit.model, own_steps, f"candidate{place}-further{turn}")
            outcomes[place] = Outcome.of(candidate, [fit, longer])
    return Search(outcomes, outcomes[close[taken_place([outcomes[place].bounds for place in close])]])


def going_on(bounds: Sequence[np.ndarray], nats: float) -> list[int]:
    """Return the places of the candidates within so many nats of the highest bound, in their order."""
    order = np.argsort([-np.mean(own) for own in bounds], kind="stable")[:FINALISTS]
    return sorted(int(place) for place in order if not _is_above(bounds[order[0]], bounds[place], nats))


def taken_place(bounds: Sequence[np.ndarray]) -> int:
    """Return the place of the first of some candidates that the highest is not clearly above, by bounds at steps."""
    highest = max(bounds, key=np.mean)
    return next(place for place, own in enumerate(bounds) if not _is_above(highest, own, MARGIN))


def _is_above(bounds: np.ndarray, others: np.ndarray, nats: float) -> bool:
    """Return whether bounds are above others by more than so many nats and two standard errors of the difference."""
    gap = bounds - others
    return bool(np.mean(gap) > max(nats, 2 * np.std(gap) / np.sqrt(len(gap))))


def _after(trained: Model, start: Model, candidate: Candidate) -> Model:
    """Return a candidate's model once the RBF alone has been trained."""

    def own(node: Any) -> Any:
        return candidate.after(node) if isinstance(node, ChosenSum) else node

    model = jax.tree.map(own, dataclasses.replace(trained, hypers=None), is_leaf=_is_joint)
    if trained.hypers is None or start.hypers is None:
        return model
    return dataclasses.replace(model, hypers=dataclasses.replace(start.hypers, log_stds=trained.hypers.log_stds))


def with_candidate(model: Model, candidate: Candidate) -> Model:
    """Return a trained model with its joint kernel replaced by the candidate's own."""
    bare = _alone(dataclasses.replace(model, hypers=None), candidate)
    if model.hypers is None:
        return bare
    return dataclasses.replace(bare, hypers=_hypers_alone(model, bare, candidate))


def _alone(tree: Any, candidate: Candidate) -> Any:
    """Return a tree with every joint kernel replaced by the candidate's own."""

    def own(node: Any) -> Any:
        return node.alone(candidate.joint.chosen) if isinstance(node, ChosenSum) else node

    return jax.tree.map(own, tree, is_leaf=_is_joint)


def _is_joint(node: object) -> bool:
    return isinstance(node, ChosenSum)


def _hypers_alone(model: Model, bare: Model, candidate: Candidate) -> HyperPosterior:
    """Return the posterior of the hyper-parameters of a model that has the candidate's kernel alone."""
    assert isinstance(model.hypers, HyperPosteriorOfChosen)
    leaves, structure = jax.tree.flatten(dataclasses.replace(model, hypers=None))
    # where every leaf of the model with one kernel was among those of the joint one
    places = jax.tree.leaves(_alone(jax.tree.unflatten(structure, range(len(leaves))), candidate))
    own = HyperPosterior.initial(bare, release_times(bare))
    before = [model.hypers.places.index(places[place]) for place in own.places]
    log_stds = tuple(model.hypers.log_stds[place] for place in before)
    return HyperPosterior(log_stds, Fixed(tuple(model.hypers.centres.value[place] for place in before)), own.places)


def check_table(columns: Any) -> None:
    """Raise an error unless a restored table is one that a search leaves."""
    names = COLUMNS
    is_table = isinstance(columns, dict) and set(columns) == set(names)
    kinds = [getattr(columns[name], "dtype", np.dtype(bool)).kind for name in names] if is_table else []
    fits = kinds == ["O", "f", "f", "i", "f"] and len({columns[name].shape for name in names}) == 1
    if not fits or columns["taken"].ndim != 1 or np.sum(columns["taken"] > 0) != 1:
        raise ValueError(f"_kernel_search: expected the columns {names} with one candidate that was taken")


def kernel_search_of(estimator: Any) -> Any:
    """Return the candidates for the input kernel with their bounds, the highest first, as a data frame.

    It is there after a fit with `input_kernel="auto"`; see the attributes of `MetaGPRegressor`.
    """
    columns = vars(estimator).get("_kernel_search")
    if columns is None:
        raise AttributeError(
            f"{type(estimator).__name__} has no kernel_search_: its input kernel was not chosen by a fit with "
            "input_kernel='auto'."
        )
    columns = {**{name: columns[name] for name in COLUMNS}, "taken": columns["taken"] > 0}
    try:
        import pandas
    except ImportError:
        return columns
    return pandas.DataFrame(columns)
