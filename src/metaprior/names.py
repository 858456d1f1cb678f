"""Names that are nearly those that are known: for the hints of error messages."""

import difflib
from collections.abc import Sequence


def nearest(name: str, known: Sequence[str]) -> str:
    """Return a hint that names the most similar column, or an empty text if none is similar."""
    folded = {other.casefold(): other for other in known}
    close = difflib.get_close_matches(name.casefold(), list(folded), 1)
    return f" (did you mean {folded[close[0]]!r}?)" if close else ""
