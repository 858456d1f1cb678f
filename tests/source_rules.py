"""What the source of a package imports and calls, and what it must not: shared by the tests of both packages."""

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

#: Packages that are imported under another name than they are installed by.
IMPORTED_AS = {"scikit-learn": "sklearn", "scikit-activeml": "skactiveml"}


def name_of(requirement: str) -> str:
    return re.match(r"[A-Za-z0-9._-]+", requirement)[0]


def declared(requirements: Sequence[str]) -> set[str]:
    """Return the names by which requirements are imported."""
    names = [name_of(requirement) for requirement in requirements]
    return {IMPORTED_AS.get(name, name).replace("-", "_") for name in names}


def loosely_bounded(requirements: Sequence[str]) -> set[str]:
    """Return the names of requirements that are not of the form name>=version."""
    form = r"[A-Za-z0-9._-]+(\[[a-z0-9,]+\])?>=[0-9]+(\.[0-9]+)*"
    return {name_of(requirement) for requirement in requirements if not re.fullmatch(form, requirement)}


def foreign_imports(package: Path) -> set[str]:
    """Return the top-level names that a package imports of others, the standard library not among them."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in package.rglob("*.py")]
    found = {name.partition(".")[0] for tree in trees for name in imports_of(tree)}
    return found - set(sys.stdlib_module_names) - {package.name}


def imports_of(tree: ast.AST) -> Iterator[str]:
    """Yield the full name of everything that is imported anywhere in a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def calls_of(tree: ast.AST) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the last part of the name of every function that is called, with its keywords as text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            keywords = {k.arg: ast.unparse(k.value) for k in node.keywords if k.arg}
            yield name, keywords


#: Modules that make code of bytes, and those that reach the network, read archives or start programs.
FORBIDDEN = ("pickle", "cPickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve", "ctypes", "code", "runpy")
FORBIDDEN += ("pooch", "requests", "urllib.request", "urllib3", "http.client", "socket", "ftplib")
FORBIDDEN += ("zipfile", "tarfile", "subprocess")
#: Calls that run what they are given, or unpack it where it says.
RUNNING = ("eval", "exec", "compile", "__import__", "os.system", "os.popen", "read_pickle", "extractall", "extract")


def is_below(name: str, module: str) -> bool:
    return name == module or name.startswith(f"{module}.")


def offences(source: str, allowed: Sequence[str] = ()) -> list[str]:
    """Return what a module does that none may do, but for imports and names that are allowed."""
    tree = ast.parse(source)
    forbidden = [module for module in FORBIDDEN if module not in allowed]
    found = [name for name in imports_of(tree) for module in forbidden if is_below(name, module)]
    for name, keywords in calls_of(tree):
        if name in RUNNING or name.rpartition(".")[2] in ("read_pickle", "extractall", "extract"):
            found.append(f"{name}()")
        for keyword, value in keywords.items():
            if (keyword, value) in (("allow_pickle", "True"), ("shell", "True"), ("verify", "False")):
                found.append(f"{name}({keyword}={value})")
        if name.endswith(("joblib.load", "torch.load", "yaml.load", "tempfile.mktemp")):
            found.append(f"{name}()")
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return found + [text for text in texts if text.startswith("http://") and text not in allowed]
