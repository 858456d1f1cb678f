"""What every loop must do, whatever it asks for: a class of tests that those of a loop inherit."""

import builtins
import copy
import pickle
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import metaprior
from killed import calls_until_killed, needs_sigkill
from metaprior.baselines import ExactGPRegressor
from metaprior.decisions import ChangedFileError, Loop
from metaprior.io.saving import load_state, save_state


class LoopContract:
    """The tests; a loop says how it is made, how it is answered, and what it refuses."""

    #: The loop's class.
    loop: type[Loop]
    #: Settings by name; "elsewhere" has an estimator of another library.
    variants: dict[str, dict]
    #: The variant that is quick: the tests that are not about fits run with it.
    quick: str
    #: Calls that are refused, by what is said of them.
    refusals: dict[str, object]
    #: Inputs of the loop's estimator.
    inputs: np.ndarray
    #: How many observations the tests make: enough for fits of all kinds.
    n_observations: int
    #: A program that makes the loop in the file of its argument, or goes on with it; see `killed`.
    program: str
    #: How many calls it makes.
    n_calls = 12

    def make(self, variant=None, **settings):
        """Return a new loop."""
        raise NotImplementedError

    def step(self, loop):
        """Ask, and tell the answer."""
        raise NotImplementedError

    def ask(self, loop):
        """Ask, and return the question as an array."""
        raise NotImplementedError

    def source(self, variant=None):
        """Return what `run` is given."""
        raise NotImplementedError

    def pending(self, loop):
        """Return what is pending as an array."""
        raise NotImplementedError

    # --- what the tests share -------------------------------------------------------

    @pytest.fixture
    def path(self, tmp_path):
        return tmp_path / "loop.metaprior"

    def load(self, variant, path):
        given = {"estimator": self.variants[variant]["estimator"]} if variant == "elsewhere" else {}
        return self.loop.load(path, **given)

    def seen(self, loop):
        """Return all that can be seen of a loop, times left out."""
        history = loop.history.drop(columns="seconds", errors="ignore")
        return history, np.copy(self.pending(loop)), None if loop.path is None else loop.path.read_bytes()

    def assert_same(self, first, second):
        pd.testing.assert_frame_equal(first[0], second[0], check_exact=True)
        np.testing.assert_array_equal(first[1], second[1])
        assert first[2] == second[2]

    # --- ask, tell, history, run -----------------------------------------------------

    def test_a_question_stays_the_same_until_it_is_told(self):
        loop = self.make()
        question = self.ask(loop)
        np.testing.assert_array_equal(self.ask(loop), question)
        assert len(self.pending(loop)) > 0
        self.step(loop)
        assert len(self.pending(loop)) == 0

    def test_history_is_a_frame_with_one_row_per_observation(self):
        loop = self.make()
        assert len(loop.history) == loop.n_observed == 0
        columns = list(loop.history)
        assert columns[0] == "observation"
        self.step(loop)
        self.step(loop)
        assert loop.history["observation"].tolist() == list(range(1, loop.n_observed + 1))
        assert list(loop.history) == columns

    def test_history_asks_for_pandas_where_it_is_missing_and_a_run_does_without(self, monkeypatch):
        loop, real = self.make(), builtins.__import__

        def without_pandas(name, *args, **kwargs):
            if name == "pandas":
                raise ImportError(name)
            return real(name, *args, **kwargs)

        monkeypatch.setattr(builtins, "__import__", without_pandas)
        loop.run(self.source(), 2)
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(ImportError, match=r'history needs pandas.* pip install "\.\[compare\]"'):
            _ = loop.history

    def test_run_returns_the_loop_and_counts_what_is_there(self):
        whole, parts = self.make(), self.make()
        assert whole.run(self.source(), self.n_observations) is whole
        parts.run(self.source(), self.n_observations // 2)
        self.ask(parts)  # stopped with a question pending
        parts.run(self.source(), self.n_observations)
        assert whole.n_observed == self.n_observations
        self.assert_same(self.seen(parts), self.seen(whole))
        n_before = whole.n_observed
        assert whole.run(self.source(), 1).n_observed == n_before

    def test_progress_goes_to_stderr_where_it_is_asked_for(self, capfd):
        self.make().run(self.source(), 4, verbose=True)
        out, err = capfd.readouterr()
        assert out == ""
        assert "4/4" in err
        self.make().run(self.source(), 4)
        assert capfd.readouterr() == ("", "")

    def test_the_seed_decides_everything(self):
        same, again, other = (
            self.seen(self.make(random_state=s).run(self.source(), self.n_observations)) for s in (3, 3, 4)
        )
        self.assert_same(same, again)
        assert not same[0].equals(other[0])

    @pytest.mark.parametrize("seed", [-1, 1.5, "luck"])
    def test_a_seed_that_is_none_is_refused(self, seed):
        with pytest.raises(ValueError, match="random_state: expected a whole number of at least 0, or None"):
            self.make(random_state=seed)

    # --- refusals ----------------------------------------------------------------------

    def test_a_call_that_is_refused_changes_nothing(self, refused, path):
        loop = self.make(path=path)
        self.step(loop)
        self.ask(loop)
        before = self.seen(loop)
        with pytest.raises((TypeError, ValueError), match=refused):
            self.refusals[refused](loop)
        self.assert_same(self.seen(loop), before)

    def test_a_file_that_cannot_be_written_changes_nothing(self, path, monkeypatch):
        loop = self.make(path=path)
        self.step(loop)

        def full(*args):
            raise OSError("the disk is full")

        for call in (self.ask, self.step):
            before = self.seen(loop)
            with monkeypatch.context() as patch:
                patch.setattr("metaprior.decisions.files.save_state", full)
                with pytest.raises(OSError, match="the disk is full"):
                    call(loop)
            self.assert_same(self.seen(loop), before)
            self.ask(loop)  # for the second time round: a question is pending, and the answer cannot be written
        whole = self.make()
        for twin in (loop, whole):
            twin.run(self.source(), self.n_observations)
        self.assert_same(self.seen(loop)[:2] + (None,), self.seen(whole))

    @pytest.mark.parametrize("error", [OSError("the disk is full"), KeyboardInterrupt()])
    def test_a_call_that_fails_after_it_has_written_can_be_repeated(self, error, path, monkeypatch):
        def write_and_fail(*args):
            save_state(*args)
            raise error

        loop, whole = self.make(path=path), self.make()
        for call in (self.ask, self.step) * 2:
            before = self.seen(loop)[:2]
            with monkeypatch.context() as patch:
                patch.setattr("metaprior.decisions.files.save_state", write_and_fail)
                with pytest.raises(type(error)):
                    call(loop)
            self.assert_same((*self.seen(loop)[:2], None), (*before, None))
            call(loop)
            call(whole)
        self.assert_same((*self.seen(loop)[:2], None), self.seen(whole))
        self.assert_same(self.seen(self.load(self.quick, path)), self.seen(loop))

    # --- several loops on one file, several threads on one loop -----------------------------

    def test_a_loop_whose_file_another_one_has_changed_refuses_to_write_and_stays_as_it_is(self, path):
        self.make(path=path)
        first, second = (self.load(self.quick, path) for _ in range(2))
        self.step(first)
        before = self.seen(second)
        with pytest.raises(ChangedFileError, match="has changed, probably by another loop.*load the file again"):
            self.ask(second)
        self.assert_same(self.seen(second), before)
        second = self.load(self.quick, path)
        self.ask(second)
        self.step(second)
        before = self.seen(first)
        for _ in range(2):  # it stays refused
            with pytest.raises(ChangedFileError, match="load the file again, and repeat the call there"):
                self.step(first)
            self.assert_same(self.seen(first), before)
        whole = self.make()
        self.step(whole)
        self.step(whole)
        self.assert_same((*self.seen(self.load(self.quick, path))[:2], None), self.seen(whole))

    def test_a_file_that_was_removed_is_written_again(self, path):
        loop = self.make(path=path)
        path.unlink()
        self.step(loop)
        assert self.load(self.quick, path).n_observed == loop.n_observed

    def test_of_new_loops_on_one_path_one_wins_and_the_others_are_told(self, path):
        start, told = threading.Barrier(4), []

        def create(seed):
            start.wait()
            try:
                told.append(self.make(path=path, random_state=seed))
            except FileExistsError as error:
                told.append(error)

        _in_threads(create, range(4))
        (winner,) = [loop for loop in told if isinstance(loop, Loop)]
        assert len(told) == 4
        assert self.load(self.quick, path).random_state == winner.random_state
        self.step(winner)

    def test_threads_that_run_one_loop_play_every_round_once(self, path):
        loop, whole = self.make(path=path), self.make()
        _in_threads(lambda _: loop.run(self.source(), self.n_observations), range(4))
        whole.run(self.source(), self.n_observations)
        self.assert_same((*self.seen(loop)[:2], None), self.seen(whole))
        self.assert_same(self.seen(self.load(self.quick, path)), self.seen(loop))

    def test_writing_leaves_nothing_beside_the_file(self, path):
        self.step(self.make(path=path))
        assert [file.name for file in path.parent.iterdir()] == [path.name]

    @pytest.mark.parametrize("copied", [copy.deepcopy, lambda loop: pickle.loads(pickle.dumps(loop))])
    def test_a_copy_goes_on_by_itself(self, copied):
        loop = self.make()
        self.step(loop)
        twin, n_before = copied(loop), loop.n_observed
        self.step(twin)
        assert twin.n_observed > loop.n_observed == n_before
        self.step(loop)
        self.assert_same(self.seen(twin), self.seen(loop))

    # --- path and load ------------------------------------------------------------------

    def test_a_loop_that_is_loaded_between_any_two_calls_asks_the_same(self, variant, path):
        whole = self.make(variant)
        self.make(variant, path=path)
        while whole.n_observed < self.n_observations:
            self.step(whole)
            question = self.ask(self.load(variant, path))
            loop = self.load(variant, path)
            np.testing.assert_array_equal(self.pending(loop), self.ask(loop))
            np.testing.assert_array_equal(self.ask(loop), question)
            self.step(loop)
        loop = self.load(variant, path)
        np.testing.assert_array_equal(self.ask(loop), self.ask(whole))
        self.assert_same(self.seen(loop)[:2] + (None,), self.seen(whole))
        np.testing.assert_array_equal(loop.model.predict(self.inputs), whole.model.predict(self.inputs))

    def test_the_estimator_that_was_given_stays_as_it_is(self, variant):
        estimator = self.variants[variant]["estimator"]
        before = str(estimator.get_params())
        self.make(variant).run(self.source(variant), self.n_observations)
        assert str(estimator.get_params()) == before
        assert not [key for key in vars(estimator) if key.endswith("_")]

    def test_a_loaded_loop_saves_to_its_file_and_another_path_may_be_set(self, path, tmp_path):
        self.make(path=path)
        loop = self.load(self.quick, path)
        self.step(loop)
        kept = path.read_bytes()
        assert self.load(self.quick, path).n_observed == loop.n_observed
        loop.path = tmp_path / "other"
        self.step(loop)
        assert path.read_bytes() == kept
        assert self.load(self.quick, tmp_path / "other").n_observed == loop.n_observed

    def test_a_file_that_is_there_is_not_written_over(self, path):
        path.write_text("precious")
        with pytest.raises(FileExistsError, match="path: .* exists; load it to continue"):
            self.make(path=path)
        assert path.read_text() == "precious"

    def test_a_seed_that_nobody_gave_is_kept(self, path):
        loop = self.make(path=path, random_state=None)
        again = self.load(self.quick, path)
        again.path = None  # it asks the same; only one of them may write that to the file
        assert again.random_state == loop.random_state
        np.testing.assert_array_equal(self.ask(again), self.ask(loop))

    def test_an_estimator_that_is_not_in_the_file_is_asked_for(self, path):
        self.make("elsewhere", path=path)
        name = type(self.variants["elsewhere"]["estimator"]).__name__
        with pytest.raises(ValueError, match=f"does not contain .*{name}, which is not of metaprior; pass estimator="):
            self.loop.load(path)
        with pytest.raises(ValueError, match=f"expected the loop's own estimator, a .*{name}; got .*LinearRegression"):
            self.loop.load(path, estimator=LinearRegression())

    def test_files_of_loops_and_of_models_are_told_apart(self, path, tmp_path):
        ExactGPRegressor(n_restarts=0, max_iter=0).fit([[0.0], [1.0]], [0.0, 1.0]).save(tmp_path / "model")
        message = f"expected a file of kind '{self.loop.kind}'; .* is of kind 'ExactGPRegressor'"
        with pytest.raises(ValueError, match=message):
            self.loop.load(tmp_path / "model")
        save_state(tmp_path / "other", "other", {})
        with pytest.raises(ValueError, match="is of kind 'other'"):
            self.loop.load(tmp_path / "other")
        self.make(path=path)
        with pytest.raises(ValueError, match=f"expected the file of an estimator.*kind '{self.loop.kind}'"):
            metaprior.load(path)
        assert set(load_state(path, self.loop.kind)) == {"settings", "state", "model"}

    @needs_sigkill
    @pytest.mark.slow
    def test_a_loop_killed_between_any_two_calls_goes_on_with_the_same_question(self, tmp_path):
        whole = calls_until_killed(self.program, tmp_path / "whole", self.n_calls)
        for first in (1, 2, 7, 8, 9, 10):  # after asks and tells, before the first fit and after it
            path = tmp_path / f"killed after {first}"
            before = calls_until_killed(self.program, path, first)
            # a question without an answer is asked again
            after = calls_until_killed(self.program, path, self.n_calls - first + first % 2)
            assert before[: first - first % 2] + after == whole


def _in_threads(function, arguments):
    """Call a function with every argument, each in a thread of its own."""
    threads = [threading.Thread(target=function, args=(argument,)) for argument in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
