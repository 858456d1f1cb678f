"""An item of our own: time and memory of a training step against width, depth, inducing codes and batch."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from metaprior import Projection, kernels
from metaprior.compilation import compilation_cache
from metaprior.inference import Recipe, StepConfig, make_data, steps
from metaprior.likelihoods import Categorical
from metaprior.model import Model
from metaprior.networks import Dense
from metaprior.random import make_key
from metaprior.weights import MetaGPSpec, Point, initial_metagp
from metaprior_reproduction.parts.figures import panels
from metaprior_reproduction.parts.item import Config, Item, Outcome, Results, Summary, Verdict
from metaprior_reproduction.parts.verdicts import at_most, said

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METAGP, MAP = "MetaGP-Local", "BNN-MAP"
#: The exponent that follows from the cost B (I + J)(M + F) of a layer, and the tolerance for measurement errors.
LINEAR, LEEWAY = 1.0, 0.2

PRESETS: dict[str, Config] = {
    "paper": {
        "seeds": 5,
        "base": {"width": 1024, "depth": 2, "inducing": 50, "batch": 128},
        "axes": {
            "width": [512, 1024, 2048, 4096],
            "depth": [1, 2, 4, 8],
            "inducing": [50, 100, 200, 400],
            "batch": [64, 128, 256, 512],
        },
        "num_inputs": 784,
        "num_outputs": 10,
        "num_steps": 5,
        "repeats": 5,
    },
    "smoke": {
        "seeds": 1,
        "base": {"width": 32, "depth": 1, "inducing": 8, "batch": 16},
        "axes": {"width": [32, 64], "inducing": [8, 16]},
        "num_inputs": 8,
        "num_outputs": 3,
        "num_steps": 5,
        "repeats": 5,
    },
}


class Shape(NamedTuple):
    """What the cost of a step depends on."""

    width: int
    depth: int
    inducing: int
    batch: int


class Cost(NamedTuple):
    """The cost of a step: seconds, and bytes of all arrays that the compiled program holds."""

    seconds: float
    bytes: float


def methods(config: Config) -> list[str]:
    """Return both models along every axis; point weights have no inducing codes."""
    pairs = [(model, axis) for model in (METAGP, MAP) for axis in config["axes"]]
    return [f"{model} {axis}" for model, axis in pairs if (model, axis) != (MAP, "inducing")]


def compute(config: Config, method: str, seeds: Sequence[int]) -> list[Outcome]:
    """Measure along one axis from the base shape; each seed repeats the measurement."""
    model, axis = method.split(" ")
    programs = {
        value: _program(config, model, Shape(**{**config["base"], axis: value}), config["num_steps"])
        for value in config["axes"][axis]
    }
    return [_measured(config, programs) for _ in seeds]


def _measured(config: Config, programs: Mapping[int, tuple[Callable[[], None], float]]) -> Outcome:
    """Return the costs; the programs take turns, so that a change in the machine's speed affects them all."""
    times: dict[int, list[float]] = {value: [] for value in programs}
    for _ in range(config["repeats"]):
        for value, (call, _) in programs.items():
            times[value].append(_seconds(call) / config["num_steps"])
    costs = {value: Cost(statistics.median(times[value]), memory) for value, (_, memory) in programs.items()}
    metrics = {f"seconds_{value}": cost.seconds for value, cost in costs.items()}
    metrics |= {f"mebibytes_{value}": cost.bytes / 2**20 for value, cost in costs.items()}
    for name in Cost._fields:
        metrics[f"exponent_{name}"] = exponent(list(costs), [getattr(cost, name) for cost in costs.values()])
    return Outcome(metrics)


def exponent(values: Sequence[float], costs: Sequence[float]) -> float:
    """Return the slope of log cost against log value, by least squares."""
    return float(np.polyfit(np.log(values), np.log(costs), 1)[0])


def _seconds(call: Callable[[], None]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def _program(config: Config, model: str, shape: Shape, num_steps: int) -> tuple[Callable[[], None], float]:
    """Return the library's own training loop, compiled, and the bytes that it holds."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((shape.batch, config["num_inputs"]))
    data = make_data(x, rng.integers(config["num_outputs"], size=(shape.batch, 1)))
    built = _model(config, model, shape, x)
    optimizer, draws = steps.adam_for(built), StepConfig(shape.batch, 1)
    recipe = Recipe(*[np.asarray(v, np.float32) for v in Recipe(num_steps=steps.STEP_BLOCK, begins=0.8)])
    state = steps.start_state(built, optimizer, np.float32)
    arguments = (
        state,
        make_key(0),
        jax.device_put(data),
        recipe,
        np.ones((), np.float32),
        np.asarray(num_steps, np.int32),
    )
    with compilation_cache():
        compiled = steps.step_block.lower(*arguments, draws, optimizer, None).compile()

    def call() -> None:
        jax.block_until_ready(compiled(*arguments, draws, optimizer, None))

    call()
    return call, held_bytes(compiled.compiled)


def held_bytes(program: Any) -> float:
    """Return the bytes of a compiled program's arguments, results and intermediate arrays, as XLA plans them."""
    plan = program.memory_analysis()
    return float(plan.argument_size_in_bytes + plan.output_size_in_bytes + plan.temp_size_in_bytes)


def _model(config: Config, model: str, shape: Shape, x: np.ndarray) -> Model:
    sizes = (config["num_inputs"], *[shape.width] * shape.depth, config["num_outputs"])
    network, rng = Dense(sizes, "relu"), np.random.default_rng(0)
    if model == MAP:
        return Model(Point.initial(network, rng), network, Categorical())
    spec = MetaGPSpec(n_inducing=shape.inducing, input_kernel=kernels.RBF().bound_to(2), projection=Projection((2,)))
    return Model(initial_metagp(spec, network.weight_layers, x, rng), network, Categorical())


def draw(results: Results) -> "Mapping[str, Figure]":
    """Draw time above memory on logarithmic scales, one column per axis, with the exponents."""
    measured = results.config["axes"]
    figure, axes = panels(2, len(measured), width=3.2, height=2.6, sharex="col", sharey="row")
    rows = (("seconds", "exponent_seconds", "seconds a step"), ("mebibytes", "exponent_bytes", "MiB of a step"))
    for line, (metric, slope, label) in zip(axes, rows, strict=True):
        for panel, (axis, values) in zip(line, measured.items(), strict=True):
            for colour, method in enumerate(m for m in results.methods if m.endswith(f" {axis}")):
                found = [results.summary(method, f"{metric}_{value}") for value in values]
                name = f"{method.split(' ')[0]}: {results.summary(method, slope).mean:.2f}"
                spread = [np.nan_to_num(s.se) for s in found]
                panel.errorbar(values, [s.mean for s in found], spread, fmt="o-", ms=4, color=f"C{colour}", label=name)
            panel.set(xscale="log", yscale="log")
            panel.legend(fontsize="x-small", title="exponent", title_fontsize="x-small")
        line[0].set_ylabel(label)
    for panel, (axis, values) in zip(axes[-1], measured.items(), strict=True):
        panel.set_xlabel({"inducing": "inducing codes"}.get(axis, axis))
        panel.set_xticks(values, [str(value) for value in values], minor=False)
        panel.minorticks_off()
    return {"scaling": figure}


def judge(results: Results) -> list[Verdict]:
    """Compare the exponents of time and memory with a linear cost along every axis."""
    return [_verdict(results, axis, name) for axis in results.config["axes"] for name in Cost._fields]


def _verdict(results: Results, axis: str, name: str) -> Verdict:
    found = results.summary(f"{METAGP} {axis}", f"exponent_{name}")
    peer: Summary = results.summary(f"{MAP} {axis}", f"exponent_{name}")
    beside = f"; of a network with point weights {said(peer, 2)}" if peer.n else ""
    first, *_, last = results.config["axes"][axis]
    what = {"seconds": "time", "bytes": "memory"}[name]
    return at_most(
        f"The {what} of a step grows at most linearly with the {_words(axis)} (exponent at most {LINEAR + LEEWAY:g}).",
        found,
        LINEAR + LEEWAY,
        f"exponent {said(found, 2)} for {axis} {first} to {last}{beside}",
        whose="ours",
    )


def _words(axis: str) -> str:
    return {"inducing": "number of inducing codes", "batch": "rows of a batch"}.get(axis, axis)


ITEM = Item(
    title="Of our own: how a training step scales",
    claim=(
        "A step of a local MetaGP (`pathwise`) costs B (I + J)(M + F) a layer: time and memory grow at most linearly "
        "with width, depth, inducing codes and batch."
    ),
    presets=PRESETS,
    methods=methods,
    compute=compute,
    draw=draw,
    judge=judge,
    together=5,
    notes=(
        "784-H-...-H-10, all layers local, a learned projection of the input to 2 dimensions, one draw, float32; one "
        "of the four numbers is changed at a time. Times are medians on the machine that `versions` names, of programs "
        "that take turns; a seed is another measurement. Memory is what XLA plans for the compiled loop: arguments, "
        "results and intermediate arrays."
    ),
)
