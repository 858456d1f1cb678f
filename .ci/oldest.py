"""Print the lowest allowed version of every dependency of both packages, as constraints for pip.

`python .ci/oldest.py` takes the dependencies of the library, of its `dev` extra with the extras that this names, and of
the reproduction; `python .ci/oldest.py plot hmc` takes other extras. Every line is `name==lower bound`.
"""

import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYPROJECTS = (ROOT / "pyproject.toml", ROOT / "reproduction" / "pyproject.toml")
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


def constraints(library: dict, *others: dict, extras: Sequence[str] = ("dev",)) -> list[str]:
    """Return the constraints of the library with these extras and of other projects, sorted, each once."""
    own = {project["name"] for project in (library, *others)}
    found = [*requirements(library, extras), *(r for project in others for r in requirements(project, ()))]
    return sorted({constraint(r) for r in found if re.split(r"[\[>=]", r)[0] not in own})


if __name__ == "__main__":
    projects = [tomllib.loads(path.read_text(encoding="utf-8"))["project"] for path in PYPROJECTS]
    print("\n".join(constraints(*projects, extras=sys.argv[1:] or ["dev"])))
