"""The whole fit of concrete (927 rows) with the default model, against GPyTorch's exact GP with ARD."""

import numpy as np

from benchmarks.measure import Row, alternating
from benchmarks.tables import exact_gp, training_rows
from benchmarks.time_to_bound import seconds_to_bound
from metaprior import MetaGPRegressor


def measure() -> Row:
    """Return (time of our fit) / (time of GPyTorch's)."""
    x, y = training_rows("concrete")
    peer = exact_gp(x, y)
    programs = {
        "ours": lambda: MetaGPRegressor(random_state=0).fit(x, y),
        "ours, RBF input kernel": lambda: MetaGPRegressor(input_kernel="rbf", random_state=0).fit(x, y),
        "ours, no input kernel": lambda: MetaGPRegressor(input_kernel=None, random_state=0).fit(x, y),
        "GPyTorch": peer,
    }
    times = alternating(programs, repeats=3)
    return Row(
        "whole fit of concrete (927 rows), default: ours / GPyTorch's exact GP with ARD, to the same tolerance",
        times["ours"] / times["GPyTorch"],
        "<= 1.5",
        {
            "seconds": times,
            "steps, GPyTorch": peer(),
            "seconds to within 1 nat of the final bound, ours, no input kernel": float(
                np.median(
                    [seconds_to_bound(MetaGPRegressor(input_kernel=None, random_state=seed), x, y) for seed in range(3)]
                )
            ),
        },
    )
