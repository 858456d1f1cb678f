"""A training step of 784-4096-4096-10 (twenty million weights): ours, all layers local, against plain MAP with Adam."""

from benchmarks.measure import Row, alternating, matmul_rate, peak_memory
from benchmarks.models import BATCH, images, mean_field, metagp, point, training
from metaprior.inference import StepConfig

SIZES, STEPS = (784, 4096, 4096, 10), 3


def measure() -> Row:
    """Return (time of our step) / (time of a MAP step), with one draw each."""
    data, draws = images(), StepConfig(BATCH, 1)
    programs = {
        "ours": training(metagp(SIZES, data, projection_dims=2), data, STEPS, draws),
        "MAP": training(point(SIZES), data, STEPS, draws),
        "MFVI": training(mean_field(SIZES), data, STEPS, draws),
    }
    times = {name: value / STEPS for name, value in alternating(programs, repeats=9).items()}
    # one product forward and two backward: 6 B flops per weight
    flops = 6 * BATCH * sum((a + 1) * b for a, b in zip(SIZES[:-1], SIZES[1:], strict=True))
    return Row(
        "training step, 784-4096-4096-10 (20 million weights), batch 128: ours (pathwise, all layers local) / MAP",
        times["ours"] / times["MAP"],
        "<= 0.3",
        {
            "seconds": times,
            "ours / MFVI": times["ours"] / times["MFVI"],
            "MAP's share of the rate of matrix products": flops / times["MAP"] / 1e9 / matmul_rate(),
            "peak memory (MiB)": peak_memory(),
        },
    )
