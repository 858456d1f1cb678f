"""A training step of 784-100-10, all layers local: the paper's formulation against ours."""

from benchmarks.measure import Row, alternating, peak_memory
from benchmarks.models import BATCH, images, metagp, training
from benchmarks.paper import PaperConditional
from metaprior.inference import StepConfig

SIZES = (784, 100, 10)


def measure() -> Row:
    """Return (time of the paper's step) / (time of ours), with one draw each."""
    data, draws = images(), StepConfig(BATCH, 1)
    ours_steps = 50
    ours = training(metagp(SIZES, data, projection_dims=2), data, ours_steps, draws)
    paper = training(metagp(SIZES, data, projection_dims=2, conditional=PaperConditional()), data, 1, draws)
    times = alternating({"paper": paper, "ours": ours}, repeats=5)
    step = times["ours"] / ours_steps
    return Row(
        "training step, 784-100-10, all layers local, batch 128: the paper's formulation / ours",
        times["paper"] / step,
        ">= 100",
        {"seconds": {"paper": times["paper"], "ours": step}, "peak memory (MiB)": peak_memory()},
    )
