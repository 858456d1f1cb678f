"""Numbers as text for readers."""

import math


def number_text(mean: float | None, se: float | None) -> str:
    """Return a mean with its standard error, both to the error's second digit; four digits if there is no error.

    None stands for a number that is not finite.
    """
    if mean is None:
        return "not finite"
    if se is None or not math.isfinite(se) or se <= 0 or abs(mean) >= 1e6:
        return f"{mean:.4g}" + (f" ± {se:.2g}" if se and abs(mean) >= 1e6 else "")
    places = min(max(1 - math.floor(math.log10(se)), 0), 6)
    return f"{mean:.{places}f} ± {se:.{places}f}"
