"""What the second package lets in: declared dependencies, files by https and checksum, no code from data."""

import json
import re
import tomllib
from pathlib import Path

import metaprior_reproduction
from source_rules import declared, foreign_imports, loosely_bounded, name_of, offences

ROOT = Path(__file__).parents[2]
PACKAGE = Path(metaprior_reproduction.__file__).parent
LIBRARY, PROJECT = (
    tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    for path in (ROOT / "pyproject.toml", ROOT / "reproduction" / "pyproject.toml")
)
#: What the elements of a picture are named by; nothing is fetched from there.
NAMESPACES = (
    "http://www.w3.org/2000/svg",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "http://creativecommons.org/ns#",
    "http://purl.org/dc/elements/1.1/",
)
#: The files that may reach the network, read archives, and name the elements of pictures.
HOMES = {"datasets/files.py": ("pooch",), "datasets/archives.py": ("tarfile",), "report/figures.py": NAMESPACES}


def test_every_dependency_has_a_lower_bound_that_is_that_of_the_library():
    assert loosely_bounded(PROJECT["dependencies"]) == set()
    lists = [LIBRARY["dependencies"], *LIBRARY["optional-dependencies"].values()]
    bounds = {name_of(r): r.partition(">=")[2] for requirements in lists for r in requirements}
    bounds[LIBRARY["name"]] = LIBRARY["version"]
    for requirement in PROJECT["dependencies"]:
        name, bound = name_of(requirement), requirement.partition(">=")[2]
        assert bounds.get(name, bound) == bound, name


def test_both_packages_have_one_version():
    assert PROJECT["version"] == LIBRARY["version"]


def test_what_is_imported_is_what_is_declared():
    needed, found = declared(PROJECT["dependencies"]), foreign_imports(PACKAGE)
    optional = declared([each for listed in PROJECT["optional-dependencies"].values() for each in listed])
    assert needed <= found <= needed | optional


def test_no_module_unpickles_evaluates_runs_programs_or_leaves_https():
    files = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    assert len(files) > 50
    assert files.keys() >= HOMES.keys()
    found = {name: offences(source, HOMES.get(name, ())) for name, source in files.items()}
    assert {name: what for name, what in found.items() if what} == {}


def test_the_register_names_https_addresses_and_a_checksum_for_every_file():
    entries = json.loads((PACKAGE / "datasets" / "registry.json").read_text(encoding="utf-8"))
    assert len(entries) > 300
    for name, entry in entries.items():
        assert re.fullmatch("[0-9a-f]{64}", entry["sha256"]), name
        assert entry["size"] > 0, name
        assert entry["addresses"], name
        for address in (*entry["addresses"], entry["homepage"]):
            assert address.startswith("https://"), name
