"""A small item for the tests of the frame: tosses of two coins."""

from collections.abc import Sequence

import numpy as np

from metaprior_reproduction.parts.item import Config, Item, Outcome, Results, Verdict

MORE_OFTEN = "The bent coin falls on heads more often & <clearly> so."
NEVER = "The fair coin never falls on heads."
CHANCES = {"fair": 0.5, "Coin [0.8] & <bent>": 0.8}


def methods(config: Config) -> list[str]:
    return list(CHANCES)


def compute(config: Config, method: str, seeds: Sequence[int]) -> list[Outcome]:
    return [tossed(config, method, seed, len(seeds)) for seed in seeds]


def tossed(config: Config, method: str, seed: int, company: int) -> Outcome:
    """Toss; the numbers depend a little on how many seeds go together, as those of real items do."""
    rng = np.random.default_rng([seed, len(method)])
    heads = rng.uniform(size=config["num_tosses"]) < CHANCES[method]
    metrics = {"heads": float(np.mean(heads)) + 1e-12 * company, "runs": float(np.sum(heads[1:] != heads[:-1]))}
    if method == "fair":
        metrics["never"] = float("inf")
    return Outcome(metrics, {"tosses": heads, "total": np.float32(heads.sum()), "none": np.zeros((0, 2))})


def draw(results: Results):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2, 1.5))
    axes = figure.add_subplot()
    for method in results.methods:
        axes.plot(np.cumsum(results.of(method)[0].outcome.arrays["tosses"]), label=method)
    axes.legend()
    return {"heads": figure}


def judge(results: Results) -> list[Verdict]:
    fair, bent = (results.summary(method, "heads").mean for method in CHANCES)
    words = f"{bent:.2f} > {fair:.2f}"
    return [
        Verdict(MORE_OFTEN, "agrees" if bent > fair else "worse", words, "ours"),
        Verdict(NEVER, "worse", f"share of heads {fair:.2f}", "baseline"),
    ]


ITEM = Item(
    title="Figure 3: tosses",
    claim="A bent coin is <not> fair & square.",
    presets={
        "smoke": {"seeds": 3, "num_tosses": 20, "sizes": (1, 2)},
        "paper": {"seeds": 5, "num_tosses": 50, "sizes": (1, 2)},
    },
    methods=methods,
    compute=compute,
    draw=draw,
    judge=judge,
    paper={"fair": {"heads": 0.4375}, "Third coin": {"heads": 0.125}},
    notes="Coins are simulated | not tossed.",
)
