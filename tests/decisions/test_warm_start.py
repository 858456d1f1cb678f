"""The model of a loop: fits that go on, fits that are fresh, and what is compiled for them."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from decisions.active_pools import SMALL, TEST, X, Y
from decisions.bandit_models import Spy
from metaprior import MetaGPClassifier, MetaGPRegressor
from metaprior.decisions import PoolLoop
from metaprior.decisions.warm_start import WarmStartedModel

pytestmark = pytest.mark.filterwarnings("ignore:the median distance")

# --- which fits are fresh ------------------------------------------------------------


def test_a_model_is_fitted_afresh_when_the_rows_have_doubled_and_warm_in_between():
    model = WarmStartedModel(Spy(), warm_iter=7)
    sizes = [10, 13, 13, 19, 20, 25, 50]
    fitted = []
    for seed, size in enumerate(sizes):
        model = model.refitted(np.zeros((size, 1)), np.zeros(size), seed)
        fitted.append(model.fitted)
    assert fitted[3].fits_ == [(10, 100, 0), (13, 7, 1), (19, 7, 3)]  # 13 rows again: nothing to do
    assert fitted[5].fits_ == [(20, 100, 4), (25, 7, 5)]
    assert fitted[6].fits_ == [(50, 100, 6)]


def test_the_estimator_that_was_given_stays_as_it_is():
    given = Spy()
    WarmStartedModel(given, warm_iter=7).refitted(np.zeros((3, 1)), np.zeros(3), 1)
    assert vars(given) == vars(Spy())


def test_a_new_fit_or_one_that_fails_leaves_the_last_one_as_it_is(monkeypatch):
    def fail(self, X, y):
        self.fits_ = "broken"
        raise KeyboardInterrupt

    last = WarmStartedModel(Spy(), warm_iter=7).refitted(np.zeros((10, 1)), np.zeros(10), 0)
    before = dict(vars(last)), dict(vars(last.fitted))
    next_one = last.refitted(np.zeros((13, 1)), np.zeros(13), 1)
    assert next_one.fitted.fits_ == [(10, 100, 0), (13, 7, 1)]
    monkeypatch.setattr(Spy, "fit", fail)
    for size in (13, 20):  # one that goes on, and a fresh one
        with pytest.raises(KeyboardInterrupt):
            last.refitted(np.zeros((size, 1)), np.zeros(size), 2)
    assert (vars(last), vars(last.fitted)) == before


STEADY = np.tile([-1.0, 1.0], 20)  # inputs and targets whose units stay as they are


def steady_loop(**settings):
    model = MetaGPRegressor(**SMALL, random_state=0, input_kernel=None)
    return PoolLoop(model, STEADY[:, None], n_initial=6, random_state=0, **settings)


def tell_pairs(loop, num_pairs):
    """Answer pairs of rows, -1 and 1, and have the model fitted after each."""
    for pair in range(num_pairs):
        loop.tell(STEADY[2 * pair : 2 * pair + 2], rows=[2 * pair, 2 * pair + 1])
        if pair >= 2:
            _ = loop.model


def test_fits_go_on_until_the_rows_have_doubled():
    loop = steady_loop()
    tell_pairs(loop, 7)
    fits = loop.history.groupby("n_rows")["fresh"].first()
    assert fits.to_dict() == {6: True, 8: False, 10: False, 12: True, 14: False}
    assert loop.model.n_iter_ == 6  # 0.3 of 20
    assert loop.model.get_params()["max_iter"] == 20
    assert loop.model.get_params()["warm_start"] is False


def test_the_steps_of_a_warm_start_can_be_chosen_and_warm_starts_be_left():
    loop = steady_loop(warm_iter=3)
    tell_pairs(loop, 4)
    assert loop.model.n_iter_ == 3
    loop = steady_loop(warm_start=False)
    tell_pairs(loop, 4)
    assert loop.history["fresh"].all()


def test_a_fit_that_goes_on_is_the_estimators_own_warm_start():
    loop = steady_loop(warm_iter=7)
    tell_pairs(loop, 4)
    twin = MetaGPRegressor(**SMALL, random_state=0, input_kernel=None).fit(STEADY[:6, None], STEADY[:6])
    twin.set_params(warm_start=True, max_iter=7).fit(STEADY[:8, None], STEADY[:8])
    assert_array_equal(loop.model.predict(X), twin.predict(X))


def test_other_units_start_afresh():
    loop = steady_loop()
    tell_pairs(loop, 3)
    loop.tell([30.0, -30.0], rows=[30, 31])
    loop.ask()
    assert loop.history["fresh"].iloc[-1]


def test_a_fit_is_fresh_where_the_last_one_no_longer_suits():
    x, labels = STEADY[:, None], np.array(["a", "b"] * 20)
    model = WarmStartedModel(MetaGPClassifier(input_kernel=None))
    assert model.must_be_fresh(x[:6], labels[:6])
    model.fitted, model.fresh_rows = object(), 6
    assert not model.must_be_fresh(x[:8], labels[:8])
    assert model.must_be_fresh(x[:8], np.append(labels[:7], "c"))
    assert model.must_be_fresh(np.append(x[:7], [[9.0]], axis=0), labels[:8])
    assert model.must_be_fresh(x[:12], labels[:12])


@pytest.mark.slow
def test_a_class_that_is_new_is_learned():
    loop = PoolLoop(
        MetaGPClassifier(**SMALL, input_kernel=None),
        STEADY[:, None],
        n_initial=6,
        acquisition="entropy",
        random_state=0,
    )
    loop.tell(["a", "b"] * 3, rows=np.arange(6))
    loop.ask()
    for label, fresh in (("b", False), ("c", True)):
        loop.tell([label], rows=loop.ask().rows)
        loop.ask()
        assert loop.history["fresh"].iloc[-1] == fresh
    assert loop.model.classes_.tolist() == ["a", "b", "c"]


@pytest.fixture(scope="module")
def compiled():
    """Count the programs that are compiled from here on."""
    events = []

    def heard(event, duration, **_):
        if event.endswith("backend_compile_duration"):
            events.append(event)

    jax.monitoring.register_event_duration_secs_listener(heard)
    return events


def test_growing_data_compile_nothing(compiled):
    """From 6 to 15 rows: fits fresh and warm, scores, choices."""
    loop = PoolLoop(MetaGPRegressor(**SMALL, input_kernel=None), X, n_initial=6, test=TEST, random_state=0)
    loop.run(Y, 7)
    before = len(compiled)
    loop.run(Y, 15)
    assert set(loop.history["fresh"]) == {True, False}
    assert len(compiled) == before
    jax.jit(lambda x: x + before)(1.0)
    assert len(compiled) > before  # the counter does count
