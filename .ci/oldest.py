"""Print the lowest allowed version of every dependency in pyproject.toml, as constraints for pip.

`python .ci/oldest.py` takes the dependencies of the package and of the `dev` extra, with the extras that these name;
`python .ci/oldest.py plot hmc` takes other extras. Every line is `name==lower bound`.
"""

import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
#: A name, extras in brackets, and one lower bound: all that a dependency may say.
DEPENDENCY = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[(?P<extras>[a-z0-9,_-]+)\])?\s*(>=\s*(?P<lowest>[0-9][0-9.]*))?")


def requirements(project: dict, extras: Sequence[str]) -> Iterator[str]:
    """Yield every requirement of the package with these extras; an extra that names others brings theirs."""
    yield from project["dependencies"]
    todo, seen = list(extras), set()
    while todo:
        extra = todo.pop()
        if extra in seen:
            continue
        seen.add(extra)
        for requirement in project["optional-dependencies"][extra]:
            found = DEPENDENCY.fullmatch(requirement)
            if found and found["name"] == project["name"]:
                todo += (found["extras"] or "").split(",")
            else:
                yield requirement


def constraint(requirement: str) -> str:
    """Return `name==lowest` of a requirement `name>=lowest`."""
    found = DEPENDENCY.fullmatch(requirement)
    if not found or not found["lowest"]:
        raise ValueError(
            f"pyproject.toml: expected a dependency with a lower bound only, name>=version; got {requirement!r}."
        )
    return f"{found['name']}=={found['lowest']}"


def constraints(project: dict, extras: Sequence[str] = ("dev",)) -> list[str]:
    """Return the constraints, sorted, each once."""
    return sorted({constraint(requirement) for requirement in requirements(project, extras)})


if __name__ == "__main__":
    chosen = sys.argv[1:] or ["dev"]
    print("\n".join(constraints(tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"], chosen)))
