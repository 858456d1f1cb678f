"""Write the bill of materials of a release: every locked dependency with its version, hashes and license.

`python .ci/sbom.py` writes `dist/metaprior-<version>.cdx.json` in the format CycloneDX 1.6. Versions and hashes come
from requirements-dev.lock; licenses, and what depends on what, from the metadata of the environment that runs it. The
same lock and the same environment give the same file; a release is made in the locked one (`make venv-locked`).

A component is `required` by the library, `optional` (one of its extras for users brings it) or `excluded` (it serves
development only, and no user gets it).
"""

import json
import re
import tomllib
import uuid
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path
from typing import NamedTuple

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements-dev.lock"
#: Extras for users; the others are for development.
FOR_USERS = ("plot", "compare", "cli", "hmc")
#: One entry of the lock: a version, a condition, and lines of hashes.
PIN = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^ ;\\\n]+)(?: ; (?P<marker>[^\\\n]+?))?"
    r"(?P<hashes>(?: \\\n    --hash=\S+)*)$",
    re.MULTILINE,
)


class Pin(NamedTuple):
    """A dependency in the version of the lock, and the SHA-256 of every file of that version."""

    name: str
    version: str
    marker: str | None
    hashes: tuple[str, ...]

    @property
    def purl(self) -> str:
        """The address-free name that bills of materials use for a package."""
        return f"pkg:pypi/{self.name}@{self.version}"

    def is_for_this_python(self) -> bool:
        """Return whether the entry is for the running Python and system."""
        return self.marker is None or Marker(self.marker).evaluate()


def locked(text: str) -> list[Pin]:
    """Return the entries of a lock."""
    entries = PIN.finditer(text)
    return [
        Pin(canonicalize_name(e["name"]), e["version"], e["marker"], tuple(re.findall(r"sha256:(\w+)", e["hashes"])))
        for e in entries
    ]


def needed(requirement: Requirement, extras: Iterable[str] = ("",)) -> bool:
    """Return whether a requirement applies to this environment, for a package with these extras."""
    return requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras)


def direct(name: str, extras: Iterable[str] = ()) -> list[Requirement]:
    """Return what an installed package with these extras asks for, by its metadata."""
    try:
        listed = [Requirement(text) for text in requires(name) or ()]
    except PackageNotFoundError:
        return []
    return [requirement for requirement in listed if needed(requirement, ("", *extras))]


def closure(asked: Sequence[str]) -> dict[str, set[str]]:
    """Return everything that requirements bring along, each with the names that it asks for itself."""
    found: dict[str, set[str]] = {}
    todo, seen = [Requirement(text) for text in asked], set()
    while todo:
        requirement = todo.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        own = direct(name, extras)
        found.setdefault(name, set()).update(canonicalize_name(other.name) for other in own)
        todo += own
    return found


def license_of(name: str) -> str | None:
    """Return the license that the metadata of an installed package names, in a line, or None."""
    try:
        about = metadata(name)
    except PackageNotFoundError:
        return None
    named = [about[key] for key in ("License-Expression", "License") if key in about]
    classified = [c.rpartition(" :: ")[2] for c in about.get_all("Classifier", []) if c.startswith("License :: ")]
    return next((text for text in (*named, *classified) if text and "\n" not in text and len(text) < 100), None)


def component(pin: Pin, scope: str) -> dict:
    """Return the entry of one dependency."""
    known = license_of(pin.name)
    return {
        "type": "library",
        "bom-ref": pin.purl,
        "name": pin.name,
        "version": pin.version,
        "scope": scope,
        "purl": pin.purl,
        "hashes": [{"alg": "SHA-256", "content": digest} for digest in pin.hashes],
        **({"licenses": [{"license": {"name": known}}]} if known else {}),
    }


def bill(project: dict, pins: Sequence[Pin]) -> dict:
    """Return the bill of materials of a package."""
    extras = project["optional-dependencies"]
    required = closure(project["dependencies"])
    optional = closure([text for extra in FOR_USERS for text in extras[extra]])
    graph = closure([project["name"], *(pin.name for pin in pins)])
    refs = {pin.name: pin.purl for pin in pins if pin.is_for_this_python()}
    own = f"pkg:pypi/{project['name']}@{project['version']}"
    scopes = {name: "required" if name in required else "optional" for name in (*required, *optional)}
    direct_refs = [refs[canonicalize_name(Requirement(text).name)] for text in project["dependencies"]]
    depends = [{"ref": own, "dependsOn": sorted(direct_refs)}]
    for name, ref in sorted(refs.items()):
        depends.append({"ref": ref, "dependsOn": sorted(refs[other] for other in graph[name] if other in refs)})
    main = {"type": "library", "bom-ref": own, "name": project["name"], "version": project["version"], "purl": own}
    found = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**main, "licenses": [{"license": {"id": project["license"]}}]}},
        "components": [component(pin, scopes.get(pin.name, "excluded")) for pin in pins],
        "dependencies": depends,
    }
    return {**found, "serialNumber": uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(found, sort_keys=True)).urn}


if __name__ == "__main__":
    library = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    target = ROOT / "dist" / f"{library['name']}-{library['version']}.cdx.json"
    target.parent.mkdir(exist_ok=True)
    written = bill(library, locked(LOCK.read_text(encoding="utf-8")))
    target.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
    print(f"{target.relative_to(ROOT)}: {len(written['components'])} components")
