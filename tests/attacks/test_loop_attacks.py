"""Attacks on the loops of decisions: kills, full disks, rivals, threads, and files that no loop has written.

Nothing told is lost, or stored twice. A file that loads is one of a loop that can go on.
"""

import itertools
import shutil
import signal
import threading
import time

import numpy as np
import pytest

from attacks import loop_programs
from attacks.loop_kinds import KINDS
from attacks.loop_mutations import LOOPS, MAKERS, content_of, go_on, mutations, replaced
from attacks.loop_processes import Processes
from decisions.active_pools import SMALL, X, Y
from decisions.optimise_problem import BOX, FEW_DRAWS, answered, tiny
from metaprior import MetaGPClassifier, MetaGPRegressor
from metaprior.decisions import Bandit, Optimiser, PoolLoop
from metaprior.io.saving import save_state

KILLED = -signal.SIGKILL

pytestmark = pytest.mark.filterwarnings("ignore:the median distance")


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    with open(tmp_path_factory.mktemp("processes") / "errors", "w+") as errors:
        made = Processes(errors)
        yield made
        made.close()


@pytest.fixture(params=list(KINDS))
def kind(request):
    return request.param


def played(kind, n_answers, path=None):
    """Return a loop that was told 0, 1, 2, ..."""
    loop = KINDS[kind].make(path)
    for number in range(n_answers):
        KINDS[kind].ask(loop)
        KINDS[kind].tell(loop, float(number))
    return loop


def numbers(count):
    return [float(number) for number in range(count)]


# --- kills ------------------------------------------------------------------------------


def kill_at_random_moments(processes, kind, folder, n_kills, rng):
    """Let one process after the other play on the same file, and kill each; nothing that returned may be missing."""
    path, log, slowness, n_before = folder / "loop", folder / "log", 1.0, 0
    for _ in range(n_kills):
        seconds = slowness * rng.uniform(0.01, 0.12)
        assert processes.run((loop_programs.play, kind, path, log), killed_after=seconds) == [KILLED]
        if path.exists():
            stored = KINDS[kind].stored(KINDS[kind].load(path))
            n_told = len(log.read_text().split()) if log.exists() else 0
            assert stored == numbers(len(stored))  # each once, in order
            assert 0 <= len(stored) - n_told <= n_kills  # all that returned; a killed call may have stored its answer
            n_before, has_grown = len(stored), len(stored) > n_before or len(stored) == loop_programs.FULL
        # a machine that is busy needs longer to tell anything
        slowness = slowness if path.exists() and has_grown else 2 * slowness
    loop = KINDS[kind].load(path)
    whole = played(kind, loop.n_observed)
    assert KINDS[kind].ask(loop) == KINDS[kind].ask(whole)
    assert loop.history.drop(columns="seconds", errors="ignore").equals(
        whole.history.drop(columns="seconds", errors="ignore")
    )
    return loop.n_observed


def test_a_loop_killed_at_random_moments_has_all_that_was_told(processes, kind, tmp_path):
    """Tried: 6 kills of every kind of loop."""
    assert kill_at_random_moments(processes, kind, tmp_path, 6, np.random.default_rng(1)) > 0


@pytest.mark.slow
def test_a_loop_killed_at_many_random_moments_has_all_that_was_told(processes, kind, tmp_path):
    """Tried: 60 kills of every kind of loop."""
    assert kill_at_random_moments(processes, kind, tmp_path, 60, np.random.default_rng(2)) > 0


@pytest.mark.parametrize("call", ["ask", "tell"])
def test_a_loop_killed_before_any_operation_on_files_has_the_state_before_or_after(processes, kind, call, tmp_path):
    loops, n_before = KINDS[kind], 5
    first = played(kind, n_before, tmp_path / "first")
    if call == "tell":
        loops.ask(first)
    # each in a folder of its own: a save also clears away what killed processes have left beside it
    paths = [tmp_path / f"killed before {number}" / "loop" for number in range(1, 21)]
    for path in paths:
        path.parent.mkdir()
        shutil.copy(tmp_path / "first", path)
    ended = processes.run(*[(loop_programs.die, kind, path, call, 1 + n) for n, path in enumerate(paths)])
    n_killed = ended.count(KILLED)
    assert n_killed >= 6
    assert ended == [KILLED] * n_killed + [0] * (20 - n_killed)  # 20 are more operations than there are
    whole = played(kind, n_before)
    question = loops.ask(whole)
    for path in paths[:n_killed]:
        loop = loops.load(path)
        stored = loops.stored(loop)
        if call == "ask" or stored == numbers(n_before):
            assert loops.ask(loop) == question
            loops.tell(loop, float(n_before))
        loop = loops.load(path)
        assert loops.stored(loop) == numbers(n_before + 1)
        loops.ask(loop)
    assert list(tmp_path.rglob("*.lock")) == []


# --- full disks ---------------------------------------------------------------------------


def test_every_call_on_a_full_disk_fails_changes_nothing_and_can_be_repeated(processes, kind, tmp_path):
    """Tried: 12 calls of every kind of loop."""
    (tmp_path / "full").mkdir()
    assert processes.run((loop_programs.fill, kind, tmp_path / "full" / "loop")) == [0]


def full(*_):
    raise OSError("the disk is full")


def make_warm(kind):
    """Return a loop whose fits go on from the last one, and that has an answer which no fit has used."""
    if kind == "active":
        loop = PoolLoop(MetaGPRegressor(**SMALL, input_kernel=None), X, n_initial=6, random_state=0).run(Y, 7)
    else:
        loop = Optimiser(BOX.bounds, estimator=tiny(), acquisition="ei", n_initial=4, warm_iter=20, random_state=0)
        loop.run(answered, 5)
    tell_more(loop)
    return loop


def tell_more(loop):
    """Tell what was not asked for."""
    if isinstance(loop, PoolLoop):
        row = int(np.setdiff1d(np.arange(len(X)), loop.rows)[0])
        loop.tell(Y[row], rows=row)
    else:
        loop.tell(loop.n_observed / 10, X=[0.0, 20.0 + loop.n_observed])


@pytest.mark.parametrize("kind", ["active", pytest.param("optimise", marks=pytest.mark.slow)])
def test_a_fit_whose_question_could_not_be_written_leaves_no_trace(kind, tmp_path, monkeypatch):
    """The next fit goes on from the last one that was written, and not from one that the file does not have."""
    monkeypatch.setattr("metaprior.decisions.optimise.acquisition.NUM_DRAWS", FEW_DRAWS)
    loop, whole = make_warm(kind), make_warm(kind)
    loop.path = tmp_path / "loop"
    with monkeypatch.context() as patch:
        patch.setattr("metaprior.decisions.files.save_state", full)
        with pytest.raises(OSError, match="the disk is full"):
            loop.ask()
    for twin in (loop, whole):
        tell_more(twin)
        twin.ask()
    assert loop._model.fresh_rows < loop._model.n_rows  # it has gone on
    np.testing.assert_array_equal(loop.model.predict(loop.X), whole.model.predict(whole.X))


# --- several processes and threads ------------------------------------------------------------


def test_what_four_processes_tell_one_loop_is_all_stored_once(processes, kind, tmp_path):
    """Tried: 40 answers to every kind of loop."""
    KINDS[kind].make(tmp_path / "loop")
    rivals = [(loop_programs.compete, kind, tmp_path / "loop", 10 * number, 10) for number in range(4)]
    assert processes.run(*rivals) == [0] * 4
    stored = KINDS[kind].stored(KINDS[kind].load(tmp_path / "loop"))
    assert sorted(stored) == numbers(40)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["active", "optimise"])  # a bandit first finishes the round of a killed process
def test_what_is_told_while_others_are_killed_is_all_stored_once(processes, kind, tmp_path):
    """Tried: 20 rounds of two processes that tell five answers each, and two that are killed meanwhile."""
    path, rng = tmp_path / "loop", np.random.default_rng(3)
    KINDS[kind].make(path)
    n_told, stored = 0, []
    for number in range(20):
        begin = 20 * number
        doomed = [(loop_programs.compete, kind, path, begin + 10 + 5 * n, 5) for n in range(2)]
        processes.run(*doomed, killed_after=rng.uniform(0.005, 0.05))
        rivals = [(loop_programs.compete, kind, path, begin + 5 * n, 5) for n in range(2)]
        assert processes.run(*rivals) == [0, 0]
        n_told += 10
        stored = KINDS[kind].stored(KINDS[kind].load(path))
        assert len(set(stored)) == len(stored)
        assert {float(begin + n) for n in range(10)} <= set(stored)
    assert n_told <= len(stored) <= 2 * n_told


def test_of_four_processes_that_make_one_file_one_wins(processes, kind, tmp_path):
    """Tried: 5 files of every kind of loop."""
    for number in range(5):
        path, when = tmp_path / str(number), time.time() + 0.05
        ended = processes.run(*[(loop_programs.create, kind, path, seed, when) for seed in range(4)])
        assert sorted(ended) == [0, *[loop_programs.REFUSED] * 3]
        assert KINDS[kind].load(path).random_state == ended.index(0)


@pytest.mark.parametrize("with_file", [True, False])
@pytest.mark.parametrize("kind", ["active", "optimise"])  # a bandit is told of one round at a time
def test_what_four_threads_tell_one_loop_is_all_stored_once(kind, with_file, tmp_path):
    """Tried: 80 answers in every case."""
    loop = KINDS[kind].make(tmp_path / "loop" if with_file else None)

    def tell(start):
        for number in range(start, start + 20):
            KINDS[kind].tell_unasked(loop, float(number))

    threads = [threading.Thread(target=tell, args=(20 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(KINDS[kind].stored(loop)) == numbers(80)
    if with_file:
        assert KINDS[kind].stored(KINDS[kind].load(tmp_path / "loop")) == KINDS[kind].stored(loop)


def test_what_a_caller_does_with_the_arrays_it_gave_changes_no_loop():
    """The loops keep copies; before, the first context, the first labels and the pool followed the caller's array."""
    context, pool, bounds = np.zeros(2), np.zeros((3, 1)), np.array([[0.0, 1.0]])
    labels = np.array(["a", "b"])
    arms = Bandit(2, policy="uniform", random_state=0)
    arms.ask(context)
    arms.tell(1.0)
    labelled = PoolLoop(MetaGPClassifier(input_kernel=None), pool, n_initial=3, random_state=0)
    labelled.tell(labels, rows=[0, 1])
    search = Optimiser(bounds)
    for array in (context, pool, bounds):
        array[:] = 9
    labels[:] = "c"
    assert arms.contexts.tolist() == [[0.0, 0.0]]
    assert labelled.X.tolist() == [[0.0]] * 3
    assert labelled._state.targets.tolist() == ["a", "b"]
    assert search.bounds == [[0.0, 1.0]]


# --- files that no loop has written -------------------------------------------------------------


def load_mutated(kind, folder, every):
    """Load every n-th mutated file. Return how many were refused, and how many were loaded and go on."""
    content, refused, continued = content_of(kind, folder / "right"), 0, 0
    for what, mutated in itertools.islice(mutations(content), every // 2, None, every):
        save_state(folder / "mutated", kind, mutated)
        try:
            loop = LOOPS[kind].load(folder / "mutated")
        except (ValueError, OSError):
            refused += 1
        else:
            loop.path = None
            assert len(go_on(loop)) == loop.n_observed, what
            continued += 1
    assert sorted(file.name for file in folder.iterdir()) == ["mutated", "right"]  # none has planted another file
    return refused, continued


@pytest.mark.parametrize("kind", list(MAKERS))
def test_a_mutated_file_is_refused_or_its_loop_goes_on(kind, tmp_path, monkeypatch):
    """Tried: more than 45 files of every kind of loop."""
    monkeypatch.chdir(tmp_path)
    refused, continued = load_mutated(kind, tmp_path, 10)
    assert refused + continued > 45
    assert refused > 5 * continued


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(MAKERS))
def test_all_mutated_files_are_refused_or_their_loops_go_on(kind, tmp_path, monkeypatch):
    """Tried: more than 450 files of every kind of loop."""
    monkeypatch.chdir(tmp_path)
    refused, continued = load_mutated(kind, tmp_path, 1)
    assert refused + continued > 450
    assert refused > 5 * continued


@pytest.mark.parametrize("kind", list(MAKERS))
def test_a_file_cannot_make_a_loop_write_elsewhere(kind, tmp_path):
    """Before, `path` among the settings of a stranger's file was written to when the file was loaded."""
    content = content_of(kind, tmp_path / "right")
    save_state(tmp_path / "right", kind, replaced(content, "settings", "path", str(tmp_path / "planted")))
    with pytest.raises(ValueError, match="right cannot be continued: settings: expected the fields"):
        LOOPS[kind].load(tmp_path / "right")
    assert not (tmp_path / "planted").exists()
