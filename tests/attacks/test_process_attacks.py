"""Processes that compute in odd places: no home, a cache that others can write to, a full disk, after a fork.

Everything runs in real processes with a time limit. One process tries many places, because starting one takes seconds.
"""

import json
import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from metaprior import cache_folder

#: Seconds after which a process that hangs is killed. What is tried takes a few.
PATIENCE = 120
#: A user whom the system does not know, as in many containers.
STRANGER = 54321
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0

MODEL = """
import json, os, sys, warnings
import numpy as np
from metaprior import MetaGPRegressor
X = np.linspace(0, 1, 8)[:, None]
def fitted():
    return MetaGPRegressor((2,), input_kernel=None, max_iter=2, n_predict_draws=2, random_state=0).fit(X, X[:, 0])
"""


def said(path, code: str, **environment: str) -> dict:
    """Run a program that knows no other environment, and return what it prints last, as JSON."""
    path.write_text(MODEL + textwrap.dedent(code))
    usual = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "XLA_FLAGS", "NPROC") if name in os.environ}
    run = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=PATIENCE, env={**usual, **environment}
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


# --- the folder of compiled programs ----------------------------------------------------------------------------------

#: Every place is tried with a whole fit and a prediction, twice; `base` is a folder that the user owns.
PLACES = """
os.environ["METAPRIOR_CACHE"] = "off"
fitted().predict(X)  # all is imported before the process becomes a stranger
base, stranger = sys.argv[0] + ".d", int(os.environ["STRANGER"])
os.mkdir(base)
def folder(name, mode, owner=stranger):
    path = os.path.join(base, name)
    os.mkdir(path)
    os.chmod(path, mode)
    if os.geteuid() == 0:
        os.chown(path, owner, -1)
    return path
file = os.path.join(base, "file")
open(file, "w").close()
PLACES = {
    "no home": {},
    "empty home": {"HOME": ""},
    "home is a file": {"HOME": file},
    "home does not exist": {"HOME": "/proc/nowhere"},
    "a relative cache home": {"XDG_CACHE_HOME": "here"},
    "a folder that is a file": {"METAPRIOR_CACHE": file},
    "a folder inside a file": {"METAPRIOR_CACHE": file + "/below"},
    "a name that is too long": {"METAPRIOR_CACHE": "/tmp/" + "x" * 300},
    "all may write": {"METAPRIOR_CACHE": folder("all", 0o777)},
    "all may write, sticky": {"METAPRIOR_CACHE": folder("sticky", 0o1777)},
    "the group may write": {"METAPRIOR_CACHE": folder("group", 0o770)},
    "good": {"HOME": folder("home", 0o700)},
    "good, named": {"METAPRIOR_CACHE": folder("named", 0o755)},
}
if os.geteuid() == 0:
    PLACES["read-only"] = {"METAPRIOR_CACHE": folder("closed", 0o555)}
    PLACES["home cannot be written to"] = {"HOME": folder("shut", 0o555, 0)}
    PLACES["of another user"] = {"METAPRIOR_CACHE": folder("other", 0o755, stranger + 1)}
    os.chown(base, stranger, -1)
    os.setgroups([])
    os.setuid(stranger)
found = {}
os.chdir(base)
import jax
for name, place in PLACES.items():
    for variable in ("HOME", "XDG_CACHE_HOME", "METAPRIOR_CACHE"):
        os.environ.pop(variable, None)
    os.environ.update(place)
    if "good" in name:
        jax.clear_caches()  # programs are compiled again, and written
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        values = [fitted().predict(X).tolist() for _ in range(2)]
    notes = [str(w.message) for w in caught if w.category.__name__ == "NoProgramCache"]
    found[name] = {"notes": notes, "finite": bool(np.isfinite(values).all())}
made = os.path.join(base, "home", ".cache", "metaprior", "programs")
found["made"] = {"mode": oct(os.stat(made).st_mode & 0o777), "programs": len(os.listdir(made))}
found["left"] = sorted(os.listdir(base))
print(json.dumps(found))
"""

REFUSED = {
    "home is a file": "cannot be written to",
    "home does not exist": "cannot be written to",
    "a folder that is a file": "cannot be written to",
    "a folder inside a file": "cannot be written to",
    "a name that is too long": "cannot be written to",
    "all may write": "can be written to by others",
    "all may write, sticky": "can be written to by others",
    "the group may write": "can be written to by others",
}
REFUSED_TO_A_STRANGER = {
    "no home": "no home folder",
    "a relative cache home": "no home folder",
    "empty home": "cannot be written to",
    "read-only": "cannot be written to",
    "home cannot be written to": "cannot be written to",
    "of another user": "belongs to another user",
}


@pytest.fixture(scope="module")
def places():
    with tempfile.TemporaryDirectory() as folder:  # those of pytest are closed to a stranger
        os.chmod(folder, 0o755)
        yield said(Path(folder) / "program.py", PLACES, STRANGER=str(STRANGER if IS_ROOT else os.geteuid()))


@pytest.mark.parametrize("place", REFUSED)
def test_a_folder_that_cannot_be_used_is_noted_once_and_the_fit_goes_on(places, place):
    _assert_noted_once(places[place], REFUSED[place])


@pytest.mark.skipif(not IS_ROOT, reason="only root can become a user whom the system does not know")
@pytest.mark.parametrize("place", REFUSED_TO_A_STRANGER)
def test_a_user_whom_the_system_does_not_know_fits_without_a_cache(places, place):
    if place == "a relative cache home":  # the reason is the same as that of "no home", which was noted before
        assert places[place] == {"notes": [], "finite": True}
    else:
        _assert_noted_once(places[place], REFUSED_TO_A_STRANGER[place])


def _assert_noted_once(found: dict, reason: str) -> None:
    assert found["finite"]
    (note,) = found["notes"]
    assert reason in note
    assert "METAPRIOR_CACHE=/some/folder" in note


@pytest.mark.parametrize("place", ["good", "good, named"])
def test_a_folder_of_the_users_own_is_used_without_a_note(places, place):
    assert places[place] == {"notes": [], "finite": True}


def test_a_folder_that_is_made_is_open_to_its_owner_alone(places):
    assert places["made"]["mode"] == "0o700"
    assert places["made"]["programs"] > 0


def test_nothing_is_written_beside_the_folders(places):
    """A relative XDG_CACHE_HOME counts as none, and a trial file does not stay."""
    assert set(places["left"]) <= {"file", "all", "sticky", "group", "home", "named", "closed", "shut", "other"}


def test_a_full_disk_is_noted_once_and_the_fit_goes_on(tmp_path):
    code = """
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        values = fitted().predict(X)
    print(json.dumps([bool(np.isfinite(values).all()), [str(w.message) for w in caught]]))
    """
    finite, notes = said(tmp_path / "program.py", code, METAPRIOR_CACHE=str(tmp_path / "here"))
    assert finite
    (note,) = [note for note in notes if "not kept on disk" in note]
    assert "File too large" in note
    assert not [note for note in notes if "Error writing persistent compilation cache" in note]
    assert list((tmp_path / "here").iterdir()) == []


def test_no_home_and_an_unknown_user_is_no_folder(monkeypatch):
    """The same without root: the system says that it does not know the user."""
    for name in ("HOME", "XDG_CACHE_HOME", "METAPRIOR_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda uid: (_ for _ in ()).throw(KeyError(uid)))
    monkeypatch.setattr(cache_folder, "_WARNED", set())
    with pytest.warns(cache_folder.NoProgramCache, match="no home folder"):
        assert cache_folder.usable_cache_folder() is None


# --- after a fork -----------------------------------------------------------------------------------------------------

#: What a child is asked for; a child that hangs is killed after ten seconds, and said to have hung.
FORKS = """
import multiprocessing, signal, time
warnings.simplefilter("ignore")
def outcome(question, patience=10):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = repr(question())
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)
    ends = time.monotonic() + patience
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > ends:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "hung"
        time.sleep(0.02)
    return os.read(reader, 100_000).decode()
def pooled(_):
    try:
        return str(fitted().n_iter_)
    except RuntimeError as error:
        return f"RuntimeError: {error}"
def in_pool(context):
    with multiprocessing.get_context(context).Pool(1) as pool:
        return pool.map_async(pooled, [0]).get(60)[0]
"""

AFTER = """
if __name__ == "__main__":
    from metaprior import MetaGPClassifier, prior
    from metaprior.baselines import ExactGPRegressor
    from metaprior.multitask import MultiTaskRegressor
    before = outcome(lambda: fitted().n_iter_, 60)  # JAX is imported, and nothing has run
    model, gp = fitted(), ExactGPRegressor(max_iter=0, n_restarts=0).fit(X, X[:, 0])
    answered, latents = model.predict_distribution(X), prior.draw_latents((1, 2, 1))
    mean, low = answered.mean, answered.quantile(0.1)
    def same():
        return bool(np.array_equal(answered.mean, mean) and np.array_equal(answered.quantile(0.1), low))
    QUESTIONS = {
        "fit": fitted,
        "predict": lambda: model.predict(X),
        "predict new rows": lambda: model.predict(X + 1),
        "sample_y": lambda: model.sample_y(X, 2),
        "fit a classifier": lambda: MetaGPClassifier((2,), max_iter=2).fit(X, X[:, 0] > 0.5),
        "fit another method": lambda: ExactGPRegressor(max_iter=2, n_restarts=0).fit(X, X[:, 0]),
        "predict by another method": lambda: gp.predict(X),
        "fit tasks": lambda: MultiTaskRegressor((2,), max_iter=2).fit([(X, X[:, 0])] * 2),
        "draw from the prior": lambda: prior.draw_functions((1, 2, 1), X, latents),
        "child of a child": lambda: outcome(fitted),
        "what was asked before": same,
        "parameters": lambda: fitted.__name__ and MetaGPRegressor((2,)).get_params()["max_iter"],
    }
    found = {name: outcome(question) for name, question in QUESTIONS.items()}
    found["before the first fit"] = before
    found["a pool"] = in_pool("fork")
    found["the parent"] = str(fitted().n_iter_)
    print(json.dumps(found))
"""

REFUSED_AFTER_FORK = ["fit", "predict", "predict new rows", "sample_y", "fit a classifier", "fit another method"]
REFUSED_AFTER_FORK += ["predict by another method", "fit tasks", "draw from the prior", "child of a child", "a pool"]


@pytest.fixture(scope="module")
def forks(tmp_path_factory):
    return said(tmp_path_factory.mktemp("forks") / "program.py", FORKS + AFTER, METAPRIOR_CACHE="off")


@pytest.mark.parametrize("question", REFUSED_AFTER_FORK)
def test_a_process_that_was_forked_after_a_fit_says_what_to_do_instead_of_hanging(forks, question):
    assert "RuntimeError" in forks[question]
    assert "forked" in forks[question]
    assert 'multiprocessing.get_context("spawn")' in forks[question]


def test_what_needs_no_program_works_after_a_fork(forks):
    assert forks["what was asked before"] == "True"
    assert forks["parameters"].isdigit()


def test_the_parent_goes_on_after_forks(forks):
    assert forks["the parent"] == "2"


def test_a_fork_before_the_first_fit_computes(forks):
    assert forks["before the first fit"] == "2"


FRESH = """
if __name__ == "__main__":
    from joblib import Parallel, delayed
    first = fitted().n_iter_
    print(json.dumps([first, in_pool("spawn"), in_pool("forkserver"), *Parallel(2)(delayed(pooled)(0) for _ in "12")]))
"""


@pytest.mark.slow
def test_fresh_processes_compute_after_a_fit(tmp_path):
    assert said(tmp_path / "program.py", FORKS + FRESH, METAPRIOR_CACHE="off") == [2, "2", "2", "2", "2"]
