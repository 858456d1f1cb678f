"""The whole fit of kin8nm (7,373 rows) with the default model, against GPyTorch's SVGP with 300 inducing points."""

from benchmarks.measure import Row, alternating
from benchmarks.tables import sparse_gp, training_rows
from benchmarks.time_to_bound import seconds_to_bound
from metaprior import MetaGPRegressor

NUM_INDUCING, NUM_STEPS, BATCH = 300, 3000, 256


def measure() -> Row:
    """Return (time of our fit) / (time of GPyTorch's)."""
    x, y = training_rows("kin8nm")
    programs = {
        "ours": lambda: MetaGPRegressor(random_state=0).fit(x, y),
        "ours, no input kernel": lambda: MetaGPRegressor(input_kernel=None, random_state=0).fit(x, y),
        "GPyTorch": sparse_gp(x, y, NUM_INDUCING, NUM_STEPS, BATCH),
    }
    times = alternating(programs, repeats=2)
    return Row(
        "whole fit of kin8nm (7,373 rows), default: ours / GPyTorch's SVGP (300 inducing points, 3,000 steps of 256)",
        times["ours"] / times["GPyTorch"],
        "<= 1",
        {
            "seconds": times,
            "seconds to within 0.1 % of the final bound, ours, no input kernel": seconds_to_bound(
                MetaGPRegressor(input_kernel=None, random_state=0), x, y
            ),
        },
    )
