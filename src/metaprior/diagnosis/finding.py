"""What a diagnosis says: findings, each a sentence with its numbers and what to do, and what could not be looked at."""

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from metaprior.extras import imported

if TYPE_CHECKING:
    import pandas as pd

#: How serious a finding is: nothing to do, good to know, something to change.
SEVERITIES = ("ok", "note", "warning")
#: The width of a report, and of its column of names.
WIDTH, NAME_WIDTH = 100, 16


@dataclass(frozen=True)
class Finding:
    """What one check has found.

    Attributes
    ----------
    name : str
        What was looked at, such as "convergence".
    severity : {"ok", "note", "warning"}
        Whether there is nothing to do, something to know, or something to change.
    sentence : str
        What was found.
    advice : str
        Which parameter to change, and how; empty if there is nothing to do.
    numbers : dict of float
        The numbers that the sentence rests on.
    """

    name: str
    severity: str
    sentence: str
    advice: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the severity, and that whatever is to be changed comes with advice."""
        if self.severity not in SEVERITIES:
            raise ValueError(f"severity: expected one of {SEVERITIES}; got {self.severity!r}.")
        if self.severity == "warning" and not self.advice:
            raise ValueError(f"{self.name}: expected a warning to say what to do; the advice is empty.")


@dataclass(frozen=True)
class LeftOut:
    """A check that could not be made, and why."""

    name: str
    reason: str


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """What `metaprior.diagnose` returns: findings in the order of the checks. Printing it gives a report.

    Attributes
    ----------
    title : str
        The estimator, and the rows that it was diagnosed on.
    findings : tuple of Finding
    left_out : tuple of LeftOut
        The checks that could not be made on this estimator or these rows, with the reasons.
    """

    title: str
    findings: tuple[Finding, ...]
    left_out: tuple[LeftOut, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no finding is a warning."""
        return not self.warnings

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that ask for a change."""
        return tuple(found for found in self.findings if found.severity == "warning")

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __getitem__(self, name: str) -> Finding:
        for found in self.findings:
            if found.name == name:
                return found
        why = next((f" It was left out: {own.reason}" for own in self.left_out if own.name == name), "")
        raise KeyError(f"expected one of {[found.name for found in self.findings]}; got {name!r}.{why}")

    def to_frame(self) -> "pd.DataFrame":
        """Return the findings as a table: name, severity, sentence, advice, and a dict of numbers."""
        pandas = imported("pandas", part="to_frame", extra="compare")
        columns: list[str] = ["name", "severity", "sentence", "advice", "numbers"]
        rows: list[list[Any]] = [[getattr(found, name) for name in columns] for found in self.findings]
        return pandas.DataFrame(rows, columns=columns)

    def __str__(self) -> str:
        lines = [self.title, _summary(self.findings), ""]
        for found in sorted(self.findings, key=lambda found: -SEVERITIES.index(found.severity)):
            lines += _entry(found.severity, found.name, found.sentence)
            if found.advice:
                lines += _wrapped(f"What to do: {found.advice}", _indent())
        if self.left_out:
            lines += ["", "Left out:"]
            for own in self.left_out:
                lines += _entry("", own.name, own.reason)
        return "\n".join(lines)

    __repr__ = __str__


def _summary(findings: tuple[Finding, ...]) -> str:
    counts = {severity: sum(found.severity == severity for found in findings) for severity in SEVERITIES}
    if not counts["warning"]:
        fine, verb = _number(counts["ok"], "check"), "is" if counts["ok"] == 1 else "are"
        return f"Nothing needs to be changed: {fine} {verb} in order, with {_number(counts['note'], 'note')}."
    return f"{_number(counts['warning'], 'warning')} and {_number(counts['note'], 'note')} in {len(findings)} checks."


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _indent() -> str:
    return " " * (10 + NAME_WIDTH)


def _entry(severity: str, name: str, sentence: str) -> list[str]:
    lines = _wrapped(sentence, _indent())
    return [f"{severity:<10}{name:<{NAME_WIDTH}}" + lines[0].lstrip(), *lines[1:]]


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent)
