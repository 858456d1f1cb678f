"""Published numbers on the regression sets, to stand beside ours: facts from papers and repositories, with sources.

`published_numbers.json` has them as they were printed, because the last digit says how far they were rounded.
"""

import json
from decimal import Decimal
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from metaprior_reproduction.parts.item import Summary

#: The kinds of methods that ours is compared with; trees, TabPFN and diffusion models stand beside them only.
BAYESIAN = ("Bayesian network", "deep GP")


class Printed(NamedTuple):
    """A number as it was printed: its value, and half a unit of its last digit."""

    value: float
    rounding: float


class Published(NamedTuple):
    """The numbers of one method, by set and metric; on splits of its own unless `standard_splits` says otherwise."""

    name: str
    kind: str
    standard_splits: bool
    source: str
    numbers: dict[str, dict[str, Printed]]


@lru_cache
def published(protocol: str) -> tuple[Published, ...]:
    """Return the methods with published numbers: of "tables" (random splits of 90 % and 10 %) or "gaps"."""
    text = files("metaprior_reproduction.parts").joinpath("published_numbers.json").read_text(encoding="utf-8")
    return tuple(_method(entry) for entry in json.loads(text)[protocol])


def _method(entry: dict[str, Any]) -> Published:
    numbers = {name: {metric: printed(text) for metric, text in own.items()} for name, own in entry["numbers"].items()}
    return Published(entry["name"], entry["kind"], entry["standard_splits"], entry["source"], numbers)


def printed(text: str) -> Printed:
    """Return a number with its rounding: "4.36" is 4.36 to within 0.005."""
    exponent = Decimal(text).as_tuple().exponent
    assert isinstance(exponent, int)
    return Printed(float(text), 0.5 * 10.0**exponent)


def best_published(
    protocol: str, name: str, metric: str, kinds: tuple[str, ...] = BAYESIAN
) -> tuple[str, Printed] | None:
    """Return the lowest published number of some kinds of methods on a set, and whose it is."""
    found = [
        (own.name, own.numbers[name][metric])
        for own in published(protocol)
        if own.kind in kinds and metric in own.numbers.get(name, {})
    ]
    return min(found, key=lambda pair: pair[1].value) if found else None


def is_level(ours: Summary, other: Printed) -> bool:
    """Return whether our mean is at most the published one, plus its rounding and one standard error of ours."""
    error = ours.se if ours.n > 1 else 0.0
    return bool(ours.mean <= other.value + other.rounding + error)


def beside(protocol: str, names: list[str]) -> dict[str, dict[str, float]]:
    """Return published numbers as the rows of a table: "SET METHOD (published)", with the metrics of ours."""
    return {
        f"{name} {own.name} (published)": {metric: number.value for metric, number in own.numbers[name].items()}
        for name in names
        for own in published(protocol)
        if name in own.numbers
    }


def sources(protocol: str) -> str:
    """Return where the numbers are from, for the notes of an item."""
    return "; ".join(
        f"{own.name}{'' if own.standard_splits else ' (splits of its own)'}: {own.source}"
        for own in published(protocol)
    )
