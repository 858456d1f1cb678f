"""How step time grows with width: its exponent for a network 784-H-H-10, all layers local, H from 512 to 8192."""

import numpy as np

from benchmarks.measure import Row, alternating
from benchmarks.models import BATCH, images, metagp, point, training
from metaprior.inference import StepConfig

WIDTHS = (512, 1024, 2048, 4096, 8192)
#: The widths at which the same network with point weights is measured too.
POINT_WIDTHS = (512, 1024, 2048, 4096)


def measure() -> Row:
    """Return the slope of log time against log width."""
    data, draws, num_steps = images(), StepConfig(BATCH, 1), 3

    def sizes(width: int) -> tuple[int, ...]:
        return (784, width, width, 10)

    programs = {
        f"ours {w}": training(metagp(sizes(w), data, projection_dims=2), data, num_steps, draws) for w in WIDTHS
    }
    programs |= {f"MAP {w}": training(point(sizes(w)), data, num_steps, draws) for w in POINT_WIDTHS}
    times = {name: value / num_steps for name, value in alternating(programs, repeats=7).items()}

    def exponent(name: str, widths: tuple[int, ...]) -> float:
        return float(np.polyfit(np.log(widths), np.log([times[f"{name} {w}"] for w in widths]), 1)[0])

    return Row(
        "exponent of step time against width, 784-H-H-10, all layers local, H from 512 to 8192",
        exponent("ours", WIDTHS),
        "<= 1.2",
        {
            "seconds": times,
            "exponent, MAP": exponent("MAP", POINT_WIDTHS),
            "curves": {
                "x": "hidden units H",
                "ours": [[w, times[f"ours {w}"]] for w in WIDTHS],
                "MAP": [[w, times[f"MAP {w}"]] for w in POINT_WIDTHS],
            },
        },
    )
