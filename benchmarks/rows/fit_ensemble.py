"""The whole fit of a deep ensemble of five against that of the default model, on concrete and on kin8nm."""

from benchmarks.measure import Row, alternating
from benchmarks.tables import training_rows
from metaprior import MetaGPRegressor
from metaprior.baselines import EnsembleRegressor


def _plain(random_state: int) -> MetaGPRegressor:
    """Return our model without an input kernel."""
    return MetaGPRegressor(input_kernel=None, random_state=random_state)


def measure() -> Row:
    """Return (time of the ensemble) / (time of ours), the smaller of the two."""
    tables = {name: training_rows(name) for name in ("concrete", "kin8nm")}
    programs = {
        f"{label} {name}": lambda model=model, data=data: model(random_state=0).fit(*data)
        for name, data in tables.items()
        for label, model in (("ensemble,", EnsembleRegressor), ("ours,", MetaGPRegressor), ("plain,", _plain))
    }
    times = alternating(programs, repeats=3)
    ratios = {name: times[f"ensemble, {name}"] / times[f"ours, {name}"] for name in tables}
    return Row(
        "whole fit of concrete and of kin8nm: our deep ensemble of five / our default, the smaller ratio",
        min(ratios.values()),
        ">= 1",
        {"seconds": times, **{f"ratio, {name}": value for name, value in ratios.items()}},
    )
