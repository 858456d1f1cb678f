"""`plot_elbo`: the bound and its terms against the steps of training."""

from typing import TYPE_CHECKING, Any

import numpy as np

from metaprior.plots.style import MEAN, colour, drawing, legend_above

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: What the terms of the bound are.
MEANINGS = {
    "log_likelihood": "log likelihood",
    "kl_z": "KL of the latents",
    "kl_u": "KL of the weights' GP",
    "kl_V": "KL of the projection",
    "kl_w": "KL of the weights",
    "kl_f": "KL of the functions",
    "kl_theta": "KL of the hyper-parameters",
    "kl_scale": "KL of the output scale",
    "kl_lengthscales": "KL of the lengthscales",
}
#: The part of a history, from its end, that decides the range of the axis: what came before is cut off if it is lower.
LATE = 0.8


def plot_elbo(model: Any, *, terms: bool = True, ax: "Axes | None" = None) -> "Axes":
    """Plot the bound of every step of training, and the terms that it is the sum of.

    Parameters
    ----------
    model : fitted estimator
        One that was trained by its ELBO, and has `elbo_history_` and `elbo_terms_`.
    terms : bool, default=True
        Whether to draw the terms as well. Those that lower the bound are drawn with a minus.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    known = vars(model)
    if "elbo_history_" not in known:
        raise ValueError(
            f"plot_elbo: expected a fitted estimator with elbo_history_, one that is trained by its ELBO; "
            f"{type(model).__name__} has none."
        )
    elbo = np.asarray(known["elbo_history_"])
    history = known.get("elbo_terms_", {}) if terms else {}
    order = sorted(history, key=lambda name: name != "log_likelihood")
    steps = np.arange(1, len(elbo) + 1)
    shown = [elbo]
    with drawing(ax) as axes:
        for number, name in enumerate(order, 1):
            values = np.asarray(history[name])
            signed = values if name == "log_likelihood" else -values
            sign = "" if name == "log_likelihood" else "−"
            axes.plot(steps, signed, color=colour(number), lw=1.1, label=sign + MEANINGS.get(name, name))
            shown.append(signed)
        axes.plot(steps, elbo, color=MEAN, lw=1.6, label="ELBO")
        axes.set_ylim(*_range(shown))
        axes.set_xlim(0, len(elbo))
        axes.set_xlabel("step")
        axes.set_ylabel("nats")
        legend_above(axes, ncols=3)
    return axes


def _range(shown: list[np.ndarray]) -> tuple[float, float]:
    """Return the ends of the y axis: those of the late steps, and a little more."""
    late = np.concatenate([values[-max(1, int(LATE * len(values))) :] for values in shown])
    low, high = float(np.min(late)), float(np.max(late))
    reach = 0.06 * (high - low) or 1.0
    return low - reach, high + reach
