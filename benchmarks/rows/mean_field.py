"""A training step of 784-100-10: ours, all layers local, against mean-field weights."""

from benchmarks.measure import Row, alternating
from benchmarks.models import BATCH, images, mean_field, metagp, training
from metaprior.inference import StepConfig

SIZES, STEPS = (784, 100, 10), 50


def measure() -> Row:
    """Return (time of our step) / (time of a mean-field step), with one draw each."""
    data, draws = images(), StepConfig(BATCH, 1)
    programs = {
        "ours": training(metagp(SIZES, data, projection_dims=2), data, STEPS, draws),
        "mean-field": training(mean_field(SIZES), data, STEPS, draws),
    }
    times = alternating(programs, repeats=21)
    return Row(
        "training step, 784-100-10, batch 128: ours (pathwise, all layers local) / our MFVI",
        times["ours"] / times["mean-field"],
        "<= 2",
        {"seconds": {name: value / STEPS for name, value in times.items()}},
    )
