"""`fit_together`: estimators that differ in their seed and their data only, fitted all at once."""

from collections.abc import Sequence
from typing import Any

from metaprior.estimators.base import Estimator
from metaprior.estimators.fit import PreparedFit, prepare_fit, store_fit
from metaprior.estimators.many import train_together
from metaprior.estimators.method import Start, TrainedMethod
from metaprior.inference import Fit
from metaprior.user_warnings import one_fit


@one_fit()
def fit_together(estimators: Sequence[Any], data: Sequence[tuple[Any, ...]]) -> None:
    """Fit estimators that differ in their seed and their data only, all at once.

    Every one ends as its own `fit` would leave it, up to rounding; on small networks it takes a fraction of the time.

    Parameters
    ----------
    estimators : list of estimators
        Of one class and with the same parameters but `random_state`.
    data : list of (X, y) or (X, y, sample_weight)
        One per estimator, of the same number of columns; the numbers of rows may differ.
    """
    if not estimators or len(estimators) != len(data):
        raise ValueError(f"expected as many (X, y) as estimators; got {len(data)} and {len(estimators)}.")
    for estimator in estimators:
        _check_alike(estimators[0], estimator)
    prepared = [prepare_fit(estimator, *own) for estimator, own in zip(estimators, data, strict=True)]
    starts = [_trained(own).start(own.problem, own.seed) for own in prepared]
    fits = dict[int, Fit]()
    for places in _alike(starts):
        jobs, problems = [starts[place].job for place in places], [prepared[place].problem for place in places]
        fits |= zip(places, train_together(starts[places[0]].method, jobs, problems), strict=True)
    for place, (estimator, own, start) in enumerate(zip(estimators, prepared, starts, strict=True)):
        store_fit(estimator, own, start.attributes(fits[place], own.problem, own.seed))


def _alike(starts: Sequence[Start]) -> list[list[int]]:
    """Return the places of fits that go on with the same kind of input kernel, which `input_kernel="auto"` chose."""
    groups: dict[str, list[int]] = {}
    for place, start in enumerate(starts):
        groups.setdefault(start.kind, []).append(place)
    return list(groups.values())


def _trained(prepared: PreparedFit) -> TrainedMethod:
    assert isinstance(prepared.method, TrainedMethod)
    return prepared.method


def _check_alike(first: Any, other: Any) -> None:
    method = other._method() if isinstance(other, Estimator) else None
    if not (isinstance(method, TrainedMethod) and method.is_one_run):
        raise ValueError(f"expected estimators whose fit is one run of training; got {other!r}.")
    if type(other) is not type(first):
        raise ValueError(f"expected estimators of one class; got {type(first).__name__} and {type(other).__name__}.")
    own, others = (e.get_params(deep=False) for e in (first, other))
    differing = [name for name in own if name != "random_state" and repr(own[name]) != repr(others[name])]
    if differing:
        raise ValueError(f"expected the same parameters but random_state; {differing} differ.")
