"""Importing: fast, one way, and without a trace in anybody's settings."""

import ast
import importlib.util
import json
import os
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import jax
import pytest

import metaprior
from metaprior.cache_folder import cache_folder
from metaprior.compilation import compilation_cache, drop_programs_when_many

ROOT = Path(__file__).parents[1]
PACKAGE = Path(metaprior.__file__).parent
HEAVY = ("jax", "sklearn", "matplotlib", "scipy", "pandas", "optax", "equinox")


def fresh(code: str, **environment: str) -> dict:
    """Run code in a new interpreter and return what it prints last, as JSON."""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


def test_import_takes_less_than_one_and_a_half_seconds():
    code = "import time; t = time.perf_counter(); import metaprior; print(time.perf_counter() - t)"
    assert min(fresh(code) for _ in range(3)) < 1.5


def test_import_brings_in_nothing_heavy():
    code = f"import json, sys, metaprior; print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    assert fresh(code) == []


def test_asking_for_an_estimator_does_not_bring_in_matplotlib():
    code = "import json, sys; from metaprior import MetaGPRegressor; print(json.dumps('matplotlib' in sys.modules))"
    assert fresh(code) is False


#: Prints which JAX settings differ, and how many programs were compiled, after importing and after a fit.
SETTINGS = """
import json, jax
before, compiled = dict(jax.config.values), []
def heard(event, duration, **_):
    if event.endswith("backend_compile_duration"):
        compiled.append(event)
jax.monitoring.register_event_duration_secs_listener(heard)
def changed():
    return [name for name, value in jax.config.values.items() if before.get(name, "absent") != value]

import metaprior
for name in metaprior.__all__:
    getattr(metaprior, name)
found = {"changed_by_import": changed(), "compiled_by_import": len(compiled)}
model = metaprior.MetaGPRegressor((3,), max_iter=5, n_inducing=4, n_predict_draws=2, random_state=0)
mean, std = model.fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 0.0, 1.0]).predict([[0.5]], return_std=True)
found |= {"changed_by_fit": changed(), "compiled_by_fit": len(compiled), "dtypes": [str(mean.dtype), str(std.dtype)]}
found["default_dtype"] = str(jax.numpy.ones(1).dtype)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("compiled") / "here"


@pytest.fixture(scope="module")
def settings(cache):
    return fresh(SETTINGS, METAPRIOR_CACHE=str(cache))


def test_import_flips_no_jax_setting(settings):
    assert settings["changed_by_import"] == []


def test_import_compiles_nothing(settings):
    assert settings["compiled_by_import"] == 0
    assert settings["compiled_by_fit"] > 0  # the counter does count


def test_fit_and_predict_put_every_jax_setting_back(settings):
    assert settings["changed_by_fit"] == []


def test_predictions_are_float64_while_jax_stays_at_float32(settings):
    assert settings["dtypes"] == ["float64", "float64"]
    assert settings["default_dtype"] == "float32"


def test_compiled_programs_are_kept_in_the_named_folder(settings, cache):
    assert any(cache.iterdir())


@pytest.mark.parametrize("word", ["off", "OFF", "0", ""])
def test_cache_can_be_turned_off(word, monkeypatch):
    monkeypatch.setenv("METAPRIOR_CACHE", word)
    assert cache_folder() is None
    with compilation_cache():
        assert jax.config.jax_compilation_cache_dir is None


def test_a_cache_that_the_user_has_set_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("METAPRIOR_CACHE", str(tmp_path / "ours"))
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "theirs"))
    try:
        with compilation_cache():
            assert jax.config.jax_compilation_cache_dir == str(tmp_path / "theirs")
    finally:
        jax.config.update("jax_compilation_cache_dir", None)


def test_public_classes_and_functions_are_ten_or_fewer():
    names = [name for name in metaprior.__all__ if not isinstance(getattr(metaprior, name), ModuleType)]
    assert 0 < len(names) <= 10
    assert len(set(metaprior.__all__)) == len(metaprior.__all__)


#: Parts that are no part of the public interface.
INTERNAL = {"__main__", "cache_folder", "cli", "compilation", "comparison", "dates", "extras", "forks", "hypers"}
INTERNAL |= {"latents", "model", "names", "numerics", "parallel", "periods", "random", "types"}
INTERNAL |= {"user_warnings", "version"}
#: Paths that go with the next release.
INTERNAL |= {"active", "bandit", "optimise", "chosen_rows"}


def test_every_subpackage_is_reachable_without_an_import_of_its_own():
    """A new one is added to `__all__`, or to those that are internal."""
    found = {module.name for module in pkgutil.iter_modules(metaprior.__path__)}
    assert found - INTERNAL == {name for name in metaprior.__all__ if isinstance(getattr(metaprior, name), ModuleType)}
    assert fresh("import metaprior; print(int(metaprior.kernels.RBF is not None))") == 1


def test_type_checkers_see_every_public_name():
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = [alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted(seen) == sorted(metaprior.__all__)


@pytest.mark.parametrize("name", metaprior.__all__)
def test_public_name_resolves(name):
    assert getattr(metaprior, name).__name__.rpartition(".")[2] == name


def test_dir_shows_the_public_names():
    assert set(metaprior.__all__) <= set(dir(metaprior))


def test_unknown_attribute_error_lists_the_names():
    with pytest.raises(AttributeError, match="no attribute 'MetaGP'.*MetaGPRegressor.*kernels"):
        _ = metaprior.MetaGP


def test_import_rules_hold():
    linter = shutil.which("lint-imports", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if linter is None:
        pytest.skip("import-linter is not installed")
    if importlib.util.find_spec("metaprior_reproduction") is None:
        pytest.skip("the rules are about both packages, and metaprior-reproduction is not installed")
    run = subprocess.run([linter, "--config", str(ROOT / "pyproject.toml")], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, run.stdout + run.stderr


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules() -> dict[str, Path]:
    return {module_name(path): path for path in PACKAGE.rglob("*.py")}


def imported_while_importing(path: Path, known: set[str]) -> set[str]:
    """Return the package's modules that a module names in import statements outside of functions and type checking."""
    found: set[str] = set()
    todo = list(ast.parse(path.read_text()).body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} & known or {node.module}
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            todo += node.orelse
        elif not isinstance(node, ast.FunctionDef):
            todo += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
    return found & known


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """Return modules that import each other in a circle, or nothing: leaves are taken off until none is left."""
    graph = dict(graph)
    while leaves := [name for name, imports in graph.items() if not imports & graph.keys()]:
        for name in leaves:
            del graph[name]
    return sorted(graph)


def test_no_modules_import_each_other_in_a_circle():
    known = modules()
    graph = {name: imported_while_importing(path, set(known)) - {name} for name, path in known.items()}
    assert len(graph["metaprior.estimators.base"]) > 5  # imports are seen at all
    assert cycle(graph) == []


def test_a_circle_would_be_seen():
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    "name", ["metaprior.kernels", "metaprior.inputs", "metaprior.predictive.draws", "metaprior.prior"]
)
def test_module_can_be_the_first_to_be_imported(name):
    assert fresh(f"import {name}; print(1)") == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts the memory mappings of Linux")
def test_compiled_programs_are_dropped_where_they_would_use_up_the_memory_mappings():
    doubled = jax.jit(lambda x: 2 * x)
    doubled(1.0)
    assert not drop_programs_when_many(1.0)
    assert doubled._cache_size() == 1
    assert drop_programs_when_many(1e-9)
    assert doubled._cache_size() == 0
    assert doubled(1.0) == 2
