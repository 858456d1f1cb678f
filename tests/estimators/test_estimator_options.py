"""Every model that the estimators' parameters can ask for is the one that is built, and gives finite numbers."""

import itertools

import numpy as np
import optax
import pytest

import metaprior
from metaprior import MetaGPRegressor, Projection, kernels
from metaprior.estimators import method
from metaprior.inference import train
from metaprior.model import Model
from metaprior.weight_gp import Pathwise
from prepared import method_for

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (30, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.standard_normal(30)
SMALL = {"hidden_layer_sizes": (3,), "n_inducing": 4, "n_predict_draws": 8, "max_iter": 40, "random_state": 0}


def fitted(targets: np.ndarray = Y, **kwargs) -> MetaGPRegressor:
    """Fit a small model, check that all it says is finite, and that a row's answer is the row's own."""
    model = MetaGPRegressor(**{"input_kernel": None, **SMALL, **kwargs}).fit(X, targets)
    mean, std = model.predict(X, return_std=True)
    assert np.isfinite(model.elbo_history_).all()
    assert np.isfinite(mean).all()
    assert (std > 0).all()
    np.testing.assert_allclose(model.predict(X[[7, 3]]), mean[[7, 3]], rtol=1e-9)
    return model


class Built(Exception):
    """Raised in place of training, to look at the model that it was given."""


@pytest.fixture
def built(monkeypatch):
    """Return what is built, untrained, for given parameters."""

    def look(model, *_, **__):
        raise Built(model)

    def build(**kwargs) -> Model:
        with pytest.raises(Built) as found:
            MetaGPRegressor(**{"input_kernel": None, **SMALL, **kwargs}).fit(X, Y)
        return found.value.args[0]

    monkeypatch.setattr(method, "train", look)
    return build


def test_every_layer_has_its_own_gp_unless_every_weight_is_drawn(built):
    assert built().weights.output.group is None
    assert built(weight_gp="shared").weights.output.group == 0
    assert built(output_layer="drawn").weights.groups == ((0, 1),)


def test_in_batches_a_run_is_looked_at_after_every_pass_through_the_rows():
    def window(num_rows, **options):
        own, problem = method_for(MetaGPRegressor(**{"input_kernel": None, **options}), num_rows)
        return own.settling(problem).window

    assert window(60_000, batch_size=100) == 600
    assert window(500, batch_size=100) == window(500) == 50


def test_the_number_of_inducing_codes_is_free_where_all_weights_are_anchored(built):
    assert built(n_inducing=10_000).weights.sparse_gps[0].whole


@pytest.mark.parametrize(
    ("options", "rate"),
    [({}, 0.2), ({"output_layer": "drawn"}, 0.02), ({"batch_size": 8}, 0.02), ({"learning_rate_init": 0.3}, 0.3)],
)
def test_the_step_size_is_large_where_a_step_sees_all_rows_of_an_integrated_output_layer(options, rate):
    own, problem = method_for(MetaGPRegressor(**{"input_kernel": None, **options}), 100)
    assert own.recipe(problem).learning_rate == rate


COMBINATIONS = list(itertools.product(["pathwise", "fitc", "diag", "full"], ["shared", "per_layer"], [None, "rbf"]))
#: Four of them, every conditional once, are enough for every day.
DAILY = [
    ("pathwise", "per_layer", "rbf"),
    ("fitc", "shared", "rbf"),
    ("diag", "per_layer", None),
    ("full", "shared", None),
]


@pytest.mark.parametrize(
    ("conditional", "weight_gp", "input_kernel"),
    [pytest.param(*c, marks=[] if c in DAILY else pytest.mark.slow) for c in COMBINATIONS],
)
def test_every_conditional_runs_with_every_weight_gp_and_input_kernel(conditional, weight_gp, input_kernel):
    model = fitted(conditional=conditional, weight_gp=weight_gp, input_kernel=input_kernel, output_layer="drawn")
    weights = model.model_.weights
    assert type(weights.conditional).__name__.lower() == conditional
    assert len(weights.sparse_gps) == (1 if weight_gp == "shared" else 2)
    assert (weights.input_kernel is None) == (input_kernel is None) == (model.input_kernel_ is None)
    assert model.sample_y(X[:4], 3).shape == (4, 3)


def test_every_choice_runs_every_day():
    assert set(DAILY) < set(COMBINATIONS)
    assert all({c[i] for c in DAILY} == {c[i] for c in COMBINATIONS} for i in range(3))


@pytest.mark.slow
def test_rows_that_are_equal_get_equal_values_in_a_joint_draw_of_full():
    model = fitted(conditional="full", input_kernel="rbf")
    draws = model.sample_y(X[[0, 1, 0]], 4)
    # two equal rows differ by the jitter of the factor over rows, 1e-6 of the weights' variance
    spread = np.abs(draws[0] - draws[1]).max()
    assert np.abs(draws[0] - draws[2]).max() < 0.05 * spread


WEIGHT_KERNELS = {
    "pair of names": (("matern52", "rational_quadratic"), ("Matern52", "RationalQuadratic")),
    "sum and product": (
        (kernels.RBF() + kernels.Linear(), 0.5 * (kernels.RBF() * kernels.Matern12())),
        ("Sum", "Scaled"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WEIGHT_KERNELS)
def test_each_end_of_a_weight_has_the_kernel_that_was_given(name):
    given, classes = WEIGHT_KERNELS[name]
    sparse_gp = fitted(weight_kernel=given).model_.weights.sparse_gps[0]
    assert (type(sparse_gp.kernel_in).__name__, type(sparse_gp.kernel_out).__name__) == classes


@pytest.mark.parametrize("given", ["rbf", kernels.RBF(), None])
def test_one_weight_kernel_serves_both_ends(given):
    sparse_gp = fitted(weight_kernel=given).model_.weights.sparse_gps[0]
    assert type(sparse_gp.kernel_in) is type(sparse_gp.kernel_out) is kernels.RBF


PROJECTIONS = {"one map": (1, ((1, 2),)), "two maps and tanh": (Projection((3, 2), "tanh"), ((3, 2), (2, 3)))}


@pytest.mark.parametrize("name", PROJECTIONS)
@pytest.mark.slow
def test_input_kernel_sees_the_projection(name):
    given, shapes = PROJECTIONS[name]
    model = fitted(input_projection=given, input_kernel=kernels.RBF())
    assert tuple(m.shape for m in model.model_.weights.input_map.means) == shapes
    assert model.input_kernel_.lengthscale.shape == (shapes[-1][0],)
    assert (model.elbo_terms_["kl_V"] > 0).all()


@pytest.mark.slow
def test_only_the_chosen_layers_are_local_and_weight_noise_follows_the_code():
    model = fitted(local_layers=(-1,), input_kernel="rbf", heteroscedastic_weights=True, output_layer="drawn")
    weights = model.model_.weights
    assert weights.groups == ((0,), (1,))
    assert weights.local == (False, True)
    assert weights.sparse_gps[0].code_aux is None
    assert weights.sparse_gps[1].code_aux.shape == (4, 2)
    assert np.any(weights.weight_noise.slope_in != 0)


@pytest.mark.slow
def test_several_targets_have_a_column_and_a_fixed_noise_each():
    both = np.column_stack([Y, 100 * Y**2])
    model = fitted(both, noise=[0.2, 30.0])
    assert model.predict(X).shape == (30, 2)
    assert model.sample_y(X, 3).shape == (30, 2, 3)
    # float32 holds the logarithm of the noise in target deviations
    expected = np.broadcast_to([0.2**2, 30.0**2], (30, 2))
    np.testing.assert_allclose(model.predict_distribution(X).aleatoric_variance, expected, rtol=1e-5)


@pytest.mark.slow
def test_student_t_learns_its_tail():
    likelihood = fitted(likelihood="student_t", max_iter=60).model_.likelihood
    assert likelihood.degrees > 2
    assert likelihood.degrees != pytest.approx(5, rel=1e-6)


@pytest.mark.slow
def test_poisson_predicts_positive_rates_and_is_not_standardised():
    counts = np.random.default_rng(1).poisson(np.exp(1 + np.sin(X[:, 0]))).astype(float)
    model = fitted(counts, likelihood="poisson")
    assert (model.predict(X) > 0).all()
    assert model.y_offset_ == 0
    assert model.y_scale_ == 1
    distribution = model.predict_distribution(X)
    np.testing.assert_allclose(distribution.aleatoric_variance, distribution.mean, rtol=1e-12)


def test_minibatches_and_several_weight_draws_give_finite_numbers():
    fitted(batch_size=8, n_weight_draws=2, n_train_draws=2)


@pytest.mark.slow
def test_a_deep_network_gives_finite_numbers():
    assert fitted(hidden_layer_sizes=(3, 2), activation="relu").model_.network.sizes == (2, 3, 2, 1)


@pytest.mark.parametrize(("hidden", "sizes"), [((), (2, 1)), (5, (2, 5, 1)), ([4, 3, 2], (2, 4, 3, 2, 1))])
def test_hidden_layers_are_those_that_were_asked_for(built, hidden, sizes):
    assert built(hidden_layer_sizes=hidden, n_inducing="auto").network.sizes == sizes


def test_whole_numbers_of_numpy_are_whole_numbers(built):
    two = np.int64(2)
    weights = built(
        hidden_layer_sizes=two,
        latent_dim=two,
        n_inducing=two,
        input_projection=two,
        input_kernel="rbf",
        output_layer="drawn",
    ).weights
    assert weights.sparse_gps[0].code_in.shape == (2, 2)
    assert weights.input_map.means[0].shape == (2, 2)


def test_a_conditional_object_brings_its_own_settings(built):
    assert built(conditional=Pathwise(num_features=8)).weights.conditional.num_features == 8


#: Codes of weights in a network 2-3-1 with biases: 3 * 3 in the first layer, 4 * 1 in the last; a local layer has
#: them at every one of the 30 rows.
CODES = [
    ({}, [13]),
    ({"weight_gp": "per_layer"}, [9, 4]),
    ({"input_kernel": "rbf"}, [390]),
    ({"input_kernel": "rbf", "weight_gp": "per_layer"}, [270, 120]),
    ({"input_kernel": "rbf", "local_layers": (-1,)}, [9, 120]),
    ({"local_layers": (-1,)}, [13]),
]


@pytest.mark.parametrize(("kwargs", "codes"), CODES)
def test_auto_takes_fifty_inducing_codes_or_as_many_as_every_mapping_has(built, kwargs, codes):
    sparse_gps = built(n_inducing="auto", output_layer="drawn", **kwargs).weights.sparse_gps
    assert [m.n_inducing for m in sparse_gps] == [min(50, *codes)] * len(codes)


@pytest.mark.parametrize(("kwargs", "codes"), CODES)
def test_more_inducing_codes_than_codes_are_refused(built, kwargs, codes):
    kwargs = {**kwargs, "output_layer": "drawn"}
    assert built(n_inducing=min(codes), **kwargs).weights.sparse_gps[0].n_inducing == min(codes)
    with pytest.raises(ValueError, match=f"n_inducing: {min(codes) + 1} .*give at most {min(codes)}"):
        MetaGPRegressor(**{**SMALL, "n_inducing": min(codes) + 1}, **{"input_kernel": None, **kwargs}).fit(X, Y)


def test_an_optax_optimiser_is_used_with_its_own_step(built):
    start = built().weights.latents.mean
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(method, "train", train)
        assert np.array_equal(fitted(optimizer=optax.sgd(0.0)).model_.weights.latents.mean, start)


GIVEN = kernels.Periodic(period=12.0, fixed=("period",)).on(0) * kernels.RBF(3.0, fixed=("lengthscale",)).on(1)


def test_fitted_input_kernel_is_in_the_units_of_the_data():
    model = MetaGPRegressor(**SMALL, input_kernel=GIVEN).fit(X * [40.0, 0.01] + 5, Y)
    rounding = 10 * np.finfo(np.float32).eps  # of a logarithm of size 10
    np.testing.assert_allclose(model.input_kernel_.left.inner.period, [12.0], rtol=10 * rounding)
    np.testing.assert_allclose(model.input_kernel_.right.inner.lengthscale, [3.0], rtol=10 * rounding)


def test_default_lengthscale_starts_at_the_spread_of_the_data():
    kernel = kernels.RBF(fixed=("lengthscale",))
    model = MetaGPRegressor(**SMALL, input_kernel=kernel).fit(X * [40.0, 0.01], Y)
    np.testing.assert_allclose(model.input_kernel_.lengthscale, np.std(X * [40.0, 0.01], axis=0), rtol=1e-5)


def test_an_unknown_period_starts_from_the_data():
    x = np.random.default_rng(2).uniform(0, 100, (30, 1))
    kernel = kernels.Periodic(fixed=("period",))
    model = MetaGPRegressor(**SMALL, input_kernel=kernel).fit(x, np.sin(2 * np.pi * x[:, 0] / 12))
    np.testing.assert_allclose(model.input_kernel_.period, [12.0], rtol=0.02)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (kernels.RBF(), np.sqrt(2)),
        ("matern52", np.sqrt(2)),
        (kernels.RBF(fixed=("lengthscale",)), 1.0),
        (kernels.RBF(3.0), 3.0 / X.std(axis=0)),
    ],
    ids=["usual", "by name", "fixed", "given"],
)
def test_the_lengthscale_of_an_input_kernel_starts_at_the_root_of_the_columns_unless_it_is_given(kernel, expected):
    model = MetaGPRegressor(**{**SMALL, "max_iter": 1, "learning_rate_init": 1e-12}, input_kernel=kernel).fit(X, Y)
    lengthscale = np.asarray(model.input_kernel_.lengthscale) / model.x_scale_
    np.testing.assert_allclose(lengthscale, np.broadcast_to(expected, lengthscale.shape), rtol=1e-5)


def test_the_lengthscale_starts_short_where_every_weight_is_drawn():
    options = {**SMALL, "max_iter": 1, "learning_rate_init": 1e-12, "output_layer": "drawn"}
    model = MetaGPRegressor(**options, input_kernel="rbf").fit(X, Y)
    np.testing.assert_allclose(np.asarray(model.input_kernel_.lengthscale) / model.x_scale_, 0.35, rtol=1e-5)


def test_the_parts_of_an_input_kernel_start_at_one_unit():
    kernel = kernels.RBF() * kernels.Periodic(2.0)
    model = MetaGPRegressor(**{**SMALL, "max_iter": 1, "learning_rate_init": 1e-12}, input_kernel=kernel).fit(X, Y)
    (long,) = [part for part in model.input_kernel_.children().values() if isinstance(part, kernels.RBF)]
    np.testing.assert_allclose(np.asarray(long.lengthscale), model.x_scale_, rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "hold"),
    [
        ({}, 0.0),
        ({"input_kernel": "rbf"}, 0.0),
        ({"output_layer": "drawn"}, 0.8),
        ({"input_kernel": "rbf", "noise_hold": None, "output_layer": "drawn"}, 0.5),
        ({"noise_hold": 0.3}, 0.3),
    ],
)
def test_the_noise_is_held_for_the_part_of_training_that_is_asked_for(options, hold):
    model = MetaGPRegressor((3,), n_inducing=4, max_iter=1, random_state=0, **{"input_kernel": None, **options}).fit(
        X, Y
    )
    assert model.model_.likelihood.hold == hold


@pytest.mark.slow
def test_heteroscedastic_noise_follows_the_input():
    """Noise of 0.05 on the left and 0.5 on the right: each is found within a factor of 1.6 of the truth."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (400, 1))
    true = np.where(x[:, 0] < 0, 0.05, 0.5)
    y = np.sin(2 * x[:, 0]) + true * rng.standard_normal(400)
    model = MetaGPRegressor(likelihood="heteroscedastic", input_kernel="rbf", random_state=0).fit(x, y)
    answer = model.predict_distribution(np.array([[-1.5], [-0.7], [0.7], [1.5]]))
    ratio = np.sqrt(answer.aleatoric_variance) / [0.05, 0.05, 0.5, 0.5]
    assert np.all(ratio < 1.6)
    assert np.all(ratio > 1 / 1.6)


@pytest.mark.parametrize("num_targets", [1, 2])
def test_a_model_of_its_own_noise_answers_every_question(tmp_path, num_targets):
    model = fitted(np.tile(Y[:, None], num_targets), likelihood="heteroscedastic", warm_start=True)
    answer = model.predict_distribution(X)
    shape = (len(X), num_targets)
    assert model.predict(X).shape == answer.crps(np.zeros(shape)).shape == answer.cdf(np.zeros(shape)).shape == shape
    assert answer.entropy.shape == answer.log_prob(np.zeros(shape)).shape == (len(X),)
    assert model.sample_y(X, 3).shape == (*shape, 3)
    assert answer.sample(0).shape == (answer.num_draws, *shape)
    low, high = answer.interval(0.9)
    assert np.all(high > low)
    np.testing.assert_allclose(answer.cdf(answer.quantile(0.3)), 0.3, atol=1e-6)
    model.save(tmp_path / "m.metaprior")
    np.testing.assert_array_equal(metaprior.load(tmp_path / "m.metaprior").predict(X), model.predict(X))
    with pytest.raises(ValueError, match=f"expected {num_targets} targets, as in the last fit; got {num_targets + 1}"):
        model.fit(X, np.tile(Y[:, None], num_targets + 1))


def test_a_given_noise_and_a_learned_function_of_it_do_not_go_together():
    with pytest.raises(ValueError, match="noise: expected None with likelihood='heteroscedastic'"):
        MetaGPRegressor(likelihood="heteroscedastic", noise=0.1, input_kernel=None).fit(
            np.zeros((5, 1)), np.arange(5.0)
        )
