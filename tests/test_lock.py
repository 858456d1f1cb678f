"""The lock of the development environment and the bill of materials: complete, by hash, and without an address."""

import contextlib
import importlib.util
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements-dev.lock"
pytestmark = pytest.mark.skipif(not LOCK.exists(), reason="a source distribution leaves out the lock")


def project(path):
    return tomllib.loads((ROOT / path / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def module(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture(scope="module")
def sbom():
    return module("sbom")


@pytest.fixture(scope="module")
def pins(sbom):
    return sbom.locked(LOCK.read_text(encoding="utf-8"))


def asked_for(library):
    """Return what the dev extra of the library and the reproduction ask for."""
    others = [r for r in project("reproduction")["dependencies"] if Requirement(r).name != library["name"]]
    return [*module("oldest").requirements(library, ["dev"]), *others]


def not_locked(requirements, pins):
    """Return the requirements that have no entry in the lock, or none in an allowed version."""
    asked = [Requirement(text) for text in requirements]
    return [
        str(r)
        for r in asked
        if not [pin for pin in pins if pin.name == canonicalize_name(r.name)]
        or not all(r.specifier.contains(pin.version) for pin in pins if pin.name == canonicalize_name(r.name))
    ]


def test_the_lock_has_every_dependency_in_an_allowed_version(pins):
    assert not_locked(asked_for(project(".")), pins) == []


@pytest.mark.parametrize("requirement", ["left-pad>=1", "numpy>=99", "scikit-learn<1"])
def test_a_dependency_that_is_not_locked_would_be_seen(pins, requirement):
    library = project(".")
    library["dependencies"].append(requirement)
    assert not_locked(asked_for(library), pins) == [str(Requirement(requirement))]


def is_installed(pin):
    with contextlib.suppress(PackageNotFoundError):
        return version(pin.name) == pin.version
    return False


def test_the_lock_has_all_that_its_entries_bring_along(sbom, pins):
    """By the metadata of those that are installed in the version of the lock; all are, after `make venv-locked`."""
    here = {pin.name for pin in pins if pin.is_for_this_python()}
    checked = [pin.name for pin in pins if pin.name in here and is_installed(pin)]
    missing = {name: {canonicalize_name(r.name) for r in sbom.direct(name)} - here for name in checked}
    assert {name: names for name, names in missing.items() if names} == {}


def test_every_entry_has_hashes_and_the_lock_has_no_address(pins):
    text = LOCK.read_text(encoding="utf-8")
    entries = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert len(pins) == len(entries) > 50
    assert all(pin.hashes and all(re.fullmatch("[0-9a-f]{64}", digest) for digest in pin.hashes) for pin in pins)
    assert sum(len(pin.hashes) for pin in pins) == text.count("--hash=") == text.count("--hash=sha256:")
    for word in ("://", "index", "find-links", "trusted-host", " @ ", "-e "):
        assert word not in text


def test_torch_and_the_projects_own_packages_are_not_in_the_lock(pins):
    assert {"torch", "gpytorch", "metaprior", "metaprior-reproduction"}.isdisjoint(pin.name for pin in pins)


def test_the_lock_is_for_every_supported_python(pins):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"--python-version {project('.')['requires-python'].removeprefix('>=')} " in makefile
    named = [pin.name for pin in pins if pin.is_for_this_python()]
    assert len(named) == len(set(named)), f"one version of each for Python {sys.version_info[:2]}"


def test_the_bill_of_materials_lists_the_whole_lock(sbom, pins):
    bill = sbom.bill(project("."), pins)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert [(c["name"], c["version"], len(c["hashes"])) for c in bill["components"]] == [
        (pin.name, pin.version, len(pin.hashes)) for pin in pins
    ]
    scopes = {c["name"]: c["scope"] for c in bill["components"]}
    assert (scopes["jaxlib"], scopes["pandas"], scopes["pytest"]) == ("required", "optional", "excluded")
    refs = {c["bom-ref"] for c in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
    assert len(refs) == len(pins) + 1
    assert {ref for entry in bill["dependencies"] for ref in (entry["ref"], *entry["dependsOn"])} <= refs
    assert bill == sbom.bill(project("."), pins)
    assert "://" not in str(bill)


@pytest.mark.parametrize("workflow", ["ci.yml", "release.yml"])
def test_the_bill_is_made_from_the_locked_environment_and_kept(workflow):
    text = (ROOT / ".github" / "workflows" / workflow).read_text(encoding="utf-8")
    assert text.index("make venv-locked") < text.index("make dist sbom") < text.index("path: dist/*")
