"""Forty replicates of the 1-50-1 local model: trained together against one after another."""

from benchmarks.measure import Row, alternating
from benchmarks.models import gaussian, metagp, sinusoid
from metaprior.inference import Recipe, StepConfig, train, train_many
from metaprior.random import make_key

NUM, STEPS = 40, 100


def measure() -> Row:
    """Return (time of all together) / (time of one after another), both compiled."""
    data = [sinusoid(seed=seed) for seed in range(NUM)]
    models = [metagp((1, 50, 1), own, gaussian(), activation="tanh", seed=seed) for seed, own in enumerate(data)]
    keys, draws, recipe = [make_key(seed) for seed in range(NUM)], StepConfig(None, 4), Recipe(STEPS, begins=0.8)

    def together() -> None:
        train_many(models, data, keys, recipe=recipe, step_config=draws)

    def one_by_one() -> None:
        for model, own, key in zip(models, data, keys, strict=True):
            train(model, own, key, recipe=recipe, step_config=draws)

    times = alternating({"together": together, "one by one": one_by_one}, repeats=3)
    return Row(
        "40 replicates side by side (vmap in groups, over threads) / one after the other (1-50-1 local, compiled)",
        times["together"] / times["one by one"],
        "<= 0.6",
        {"seconds": times, "steps": STEPS},
    )
