"""Every quantity of a predictive distribution at 100,000 rows, against mean and standard deviation alone."""

from typing import Any

from benchmarks.measure import Row, alternating
from benchmarks.tables import friedman
from metaprior import MetaGPRegressor


def measure() -> Row:
    """Return (time of all quantities) / (time of mean and std)."""
    model = MetaGPRegressor(random_state=0).fit(*friedman(1000, 0))
    x, y = friedman(100_000, 1)

    def moments() -> None:
        predictive = model.predict_distribution(x)
        _ = predictive.mean, predictive.std

    def everything() -> Any:
        predictive = model.predict_distribution(x)
        _ = predictive.mean, predictive.std, predictive.entropy
        return predictive.interval(0.95), predictive.log_prob(y), predictive.crps(y)

    times = alternating({"mean and std": moments, "every quantity": everything}, repeats=7)
    return Row(
        "100,000 rows: mean, std, 95 % interval, entropy, log density and CRPS / mean and std alone",
        times["every quantity"] / times["mean and std"],
        "<= 3",
        {"seconds": times},
    )
