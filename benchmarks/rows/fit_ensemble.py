"""The whole fit of a deep ensemble of five against that of the default model, on concrete and on kin8nm."""

from benchmarks.measure import Row, alternating
from benchmarks.tables import training_rows
from metaprior import MetaGPRegressor
from metaprior.baselines import EnsembleRegressor


def measure() -> Row:
    """Return (time of the ensemble) / (time of ours), the smaller of the two."""
    tables = {name: training_rows(name) for name in ("concrete", "kin8nm")}
    programs = {
        f"{label} {name}": lambda model=model, data=data: model(random_state=0).fit(*data)
        for name, data in tables.items()
        for label, model in (("ensemble,", EnsembleRegressor), ("ours,", MetaGPRegressor))
    }
    times = alternating(programs, repeats=3)
    ratios = {name: times[f"ensemble, {name}"] / times[f"ours, {name}"] for name in tables}
    return Row(
        "whole fit of concrete and of kin8nm: our deep ensemble of five / our default, the smaller ratio",
        min(ratios.values()),
        ">= 1",
        {"seconds": times, **{f"ratio, {name}": value for name, value in ratios.items()}},
    )
