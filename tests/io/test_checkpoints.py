"""Checkpoints: a run killed at any moment goes on, and ends with the bits of one that was not."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from killed import needs_sigkill
from metaprior import MetaGPRegressor
from metaprior.baselines import ExactGPRegressor, MAPRegressor
from metaprior.inference.programs import SingleRun
from metaprior.io import atomic
from metaprior.io.checkpoints import FILES, Checkpoint

SCRIPT = Path(__file__).parent / "killed_fit.py"
EVENTS = ("block of steps", "before", "written", "unnamed", "renamed")
X = np.random.default_rng(0).uniform(-1, 1, (20, 1))
Y = np.sin(3 * X[:, 0])


def run(out: Path, folder: Path | str, kind: str, event: str = "none", number: int = 0) -> int:
    command = [sys.executable, str(SCRIPT), str(out), str(folder), kind, event, str(number)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr[-3000:]
    return done.returncode


def assert_same_bits(got: Path, expected: Path) -> None:
    with np.load(got) as a, np.load(expected) as b:
        assert set(a) == set(b)
        for name in b:
            np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def killed_again_and_again(tmp_path: Path, kind: str, points: list[tuple[str, int]]) -> None:
    """Kill one fit at every point in turn, then let it end; a fit without checkpoints must agree."""
    alone, out, folder = tmp_path / "alone.npz", tmp_path / "out.npz", tmp_path / "kept"
    assert run(alone, "", kind) == 0
    kills = 0
    for event, number in points:
        code = run(out, folder, kind, event, number)
        if code == 0:
            break
        kills += 1
        assert not out.exists()
    assert kills >= min(len(points), 2)
    assert run(out, folder, kind) == 0
    assert_same_bits(out, alone)


@needs_sigkill
def test_a_killed_fit_goes_on_and_ends_with_the_same_bits(tmp_path):
    killed_again_and_again(tmp_path, "local", [("unnamed", 2), ("block of steps", 4)])


@needs_sigkill
@pytest.mark.slow
@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("number", [1, 2, 4, 5])
def test_a_fit_killed_at_any_event_ends_with_the_same_bits(tmp_path, event, number):
    """Twenty kill points, each a fit of its own."""
    alone, out, folder = tmp_path / "alone.npz", tmp_path / "out.npz", tmp_path / "kept"
    assert run(alone, "", "local") == 0
    assert run(out, folder, "local", event, number) == -signal.SIGKILL
    assert run(out, folder, "local") == 0
    assert_same_bits(out, alone)


@needs_sigkill
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["batches", "stopping", "classes", "ensemble", "laplace"])
def test_every_kind_of_fit_survives_being_killed_often(tmp_path, kind):
    killed_again_and_again(tmp_path, kind, [("renamed", 1), ("block of steps", 2), ("written", 2), ("unnamed", 2)])


@needs_sigkill
@pytest.mark.slow
def test_killed_chains_go_on_and_end_with_the_same_bits(tmp_path):
    """In the warm-up, before the first checkpoint and after it, and among the samples."""
    points = [("transitions", 2), ("renamed", 1), ("transitions", 3), ("unnamed", 1), ("written", 2)]
    killed_again_and_again(tmp_path, "sampler", points)


def small(**parameters) -> MetaGPRegressor:
    return MetaGPRegressor(
        (3,), **{"input_kernel": None, **{"n_inducing": 4, "max_iter": 200, "random_state": 0} | parameters}
    )


def test_a_finished_run_is_read_and_not_run_again(tmp_path, monkeypatch):
    first = small().fit(X, Y, checkpoint=tmp_path, every=100)
    before = [(tmp_path / name).stat().st_mtime_ns for name in FILES]
    monkeypatch.setattr(SingleRun, "advance", None)  # no step can be made
    again = small().fit(X, Y, checkpoint=tmp_path, every=100)
    np.testing.assert_array_equal(first.elbo_history_, again.elbo_history_)
    np.testing.assert_array_equal(first.predict(X), again.predict(X))
    assert [(tmp_path / name).stat().st_mtime_ns for name in FILES] == before


def test_a_killed_run_that_holds_rows_out_ends_with_the_best_model_of_all(tmp_path, monkeypatch):
    """The best weights are met in the first block of steps; the kill comes three blocks of steps later."""
    rng = np.random.default_rng(1)
    x, y = rng.uniform(-1, 1, (60, 5)), rng.standard_normal(60)  # nothing to learn but noise
    estimator = MAPRegressor((20,), learning_rate_init=0.02, max_iter=1000, n_iter_no_change=6, random_state=0)
    alone = clone(estimator).fit(x, y)
    assert alone.n_iter_ == 700
    save, calls = Checkpoint.save, []

    def killed(self, run, snapshot):
        save(self, run, snapshot)
        calls.append(snapshot)
        if len(calls) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        clone(estimator).fit(x, y, checkpoint=tmp_path, every=100)
    went_on = clone(estimator).fit(x, y, checkpoint=tmp_path, every=100)
    read = clone(estimator).fit(x, y, checkpoint=tmp_path, every=100)
    for model in (went_on, read):
        assert model.n_iter_ == alone.n_iter_
        np.testing.assert_array_equal(model.elbo_history_, alone.elbo_history_)
        np.testing.assert_array_equal(model.predict(x, return_std=True), alone.predict(x, return_std=True))


def test_checkpoints_come_every_so_many_steps(tmp_path, monkeypatch):
    sizes = []
    write = atomic.write_atomically
    monkeypatch.setattr("metaprior.io.checkpoints.write_atomically", lambda *a: (sizes.append(len(a[1])), write(*a)))
    small(max_iter=700).fit(X, Y, checkpoint=tmp_path, every=300)
    assert len(sizes) == 3  # after 300, 600, and at the end


@pytest.mark.parametrize(
    "other",
    [
        lambda m: m.set_params(random_state=1).fit,
        lambda m: m.set_params(max_iter=300).fit,
        lambda m: m.set_params(latent_dim=3).fit,
        lambda m: m.set_params(random_state=None).fit,
        lambda m: lambda X, Y, **k: m.fit(2 * X + X**2, Y, **k),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(tmp_path, other):
    small().fit(X, Y, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="belongs to another run"):
        other(small())(X, Y, checkpoint=tmp_path)


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"no such thing", lambda b: b""])
def test_a_damaged_checkpoint_is_named(tmp_path, damage):
    small().fit(X, Y, checkpoint=tmp_path)
    path = tmp_path / FILES[0]
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=r"run\.checkpoint is not a checkpoint, or is damaged.*delete the files"):
        small().fit(X, Y, checkpoint=tmp_path)


def test_a_full_disk_is_a_clear_error_and_the_last_checkpoint_stays(tmp_path, monkeypatch):
    """The second checkpoint meets a full disk; with room again the same call goes on."""
    calls, flush = [], os.fsync

    def full(handle: int) -> None:
        calls.append(handle)
        if len(calls) > 2:  # a file and its folder are flushed for each
            raise OSError(28, "No space left on device")
        flush(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"cannot write .*run-2\.checkpoint.*No space left.*last checkpoint is unchanged"):
        small(max_iter=400).fit(X, Y, checkpoint=tmp_path, every=100)
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == [FILES[0]]
    went_on = small(max_iter=400).fit(X, Y, checkpoint=tmp_path, every=100)
    np.testing.assert_array_equal(went_on.predict(X), small(max_iter=400).fit(X, Y).predict(X))


def test_a_folder_that_cannot_be_written_to_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(OSError, match="cannot create the folder"):
        small().fit(X, Y, checkpoint=tmp_path / "file" / "inside")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_a_clear_error(tmp_path):
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(OSError, match="cannot write"):
            small().fit(X, Y, checkpoint=tmp_path)
    finally:
        tmp_path.chmod(0o755)


@pytest.mark.parametrize("every", [0, -1, 1.5, True])
def test_every_must_be_a_number_of_steps(tmp_path, every):
    with pytest.raises(ValueError, match="every: expected a whole number of steps"):
        small().fit(X, Y, checkpoint=tmp_path, every=every)


def test_what_does_not_train_in_steps_keeps_no_checkpoints(tmp_path):
    with pytest.raises(ValueError, match="ExactGPRegressor does not train in steps"):
        ExactGPRegressor().fit(X, Y, checkpoint=tmp_path)


def test_restarts_side_by_side_keep_no_checkpoints(tmp_path):
    with pytest.raises(ValueError, match="expected n_restarts=0"):
        small(n_restarts=1).fit(X, Y, checkpoint=tmp_path)
