"""A mistake gets an error that says what was expected, what came and, where it helps, what to do."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from metaprior import MetaGPClassifier, MetaGPRegressor, Projection, kernels
from metaprior.estimators import method

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (30, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1]
SMALL = {"hidden_layer_sizes": (3,), "n_inducing": 4, "n_predict_draws": 8, "max_iter": 20, "random_state": 0}
BOTH = pytest.mark.parametrize("estimator", [MetaGPRegressor, MetaGPClassifier])


@pytest.fixture(autouse=True)
def no_training(monkeypatch, request):
    """A mistake must be seen before the training begins (but for tests that need a fit, or see it when tracing)."""
    if "fitted" not in request.fixturenames:
        monkeypatch.setattr(method, "train", lambda *_, **__: pytest.fail("training began"))


@pytest.fixture(scope="module")
def fitted():
    return MetaGPRegressor(**SMALL, input_kernel=None).fit(X, Y)


def with_value(value: float) -> np.ndarray:
    x = X.copy()
    x[3, 1] = value
    return x


# --- data -------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(("value", "message"), [(np.nan, "contains NaN"), (np.inf, "contains infinity")])
def test_nan_and_infinity_in_x(estimator, value, message):
    with pytest.raises(ValueError, match=message):
        estimator(**SMALL).fit(with_value(value), Y > 0)


@pytest.mark.parametrize(("value", "message"), [(np.nan, "y contains NaN"), (-np.inf, "y contains infinity")])
def test_nan_and_infinity_in_y(value, message):
    with pytest.raises(ValueError, match=message):
        MetaGPRegressor(**SMALL, input_kernel=None).fit(X, np.where(np.arange(30) == 3, value, Y))


@pytest.mark.parametrize(("value", "message"), [(np.nan, "contains NaN"), (np.inf, "contains infinity")])
def test_nan_and_infinity_at_predict(fitted, value, message):
    with pytest.raises(ValueError, match=message):
        fitted.predict(with_value(value))


@BOTH
def test_x_of_one_dimension(estimator):
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        estimator(**SMALL).fit(X[:, 0], Y > 0)


@BOTH
def test_x_of_three_dimensions(estimator):
    with pytest.raises(ValueError, match="Found array with dim 3.* 2"):
        estimator(**SMALL).fit(X[None], Y > 0)


@BOTH
def test_unequal_numbers_of_rows(estimator):
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[30, 20\]"):
        estimator(**SMALL).fit(X, Y[:20] > 0)


@BOTH
@pytest.mark.parametrize(("shape", "message"), [((0, 2), "0 sample"), ((30, 0), "0 feature")])
def test_empty_data(estimator, shape, message):
    with pytest.raises(ValueError, match=message):
        estimator(**SMALL).fit(np.zeros(shape), np.zeros(shape[0]))


@BOTH
def test_no_targets(estimator):
    with pytest.raises(ValueError, match=f"{estimator.__name__} .*requires y to be passed, but the target y is None"):
        estimator(**SMALL).fit(X, None)


@BOTH
def test_a_column_that_is_not_numbers_is_named(estimator):
    frame = pd.DataFrame({"height": X[:, 0], "town": ["Ulm", "Bonn"] * 15})
    with pytest.raises(ValueError, match=r"expected numeric columns; \['town'\] are not.*OneHotEncoder"):
        estimator(**SMALL).fit(frame, Y > 0)


def test_text_in_an_array():
    with pytest.raises(ValueError, match="could not convert string to float"):
        MetaGPRegressor(**SMALL, input_kernel=None).fit(np.array([["a", "b"]] * 30, dtype=object), Y)


def test_another_number_of_features_at_predict(fitted):
    for ask in (fitted.predict, fitted.predict_distribution, fitted.sample_y):
        with pytest.raises(ValueError, match="X has 3 features, but MetaGPRegressor is expecting 2 features"):
            ask(np.zeros((4, 3)))


@BOTH
@pytest.mark.parametrize("method", ["predict", "predict_distribution", "sample_y"])
def test_asking_before_fitting(estimator, method):
    with pytest.raises(NotFittedError, match=f"This {estimator.__name__} instance is not fitted yet"):
        getattr(estimator(), method)(X)


def test_one_class_only():
    with pytest.raises(ValueError, match="expected at least two classes; y has one class, .*yes"):
        MetaGPClassifier(**SMALL, input_kernel=None).fit(X, ["yes"] * 30)


def test_numbers_are_not_classes():
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        MetaGPClassifier(**SMALL, input_kernel=None).fit(X, Y)


@pytest.mark.parametrize("counts", [np.full(30, -1.0), np.full(30, 0.5)], ids=["negative", "fractional"])
def test_poisson_expects_counts(counts):
    with pytest.raises(ValueError, match=r"likelihood='poisson': expected counts \(0, 1, 2, ...\)"):
        MetaGPRegressor(**SMALL, likelihood="poisson", input_kernel=None).fit(X, counts)


def test_a_warm_start_expects_the_columns_of_the_last_fit(fitted):
    with pytest.raises(ValueError, match="warm_start: expected 2 features.*got 3"):
        going_on(fitted).fit(np.zeros((30, 3)), Y)


def test_a_warm_start_expects_the_targets_of_the_last_fit(fitted):
    with pytest.raises(ValueError, match="warm_start: expected 1 target.*got 2"):
        going_on(fitted).fit(X, np.column_stack([Y, Y]))


def test_a_warm_start_expects_counts_again(fitted):
    with pytest.raises(ValueError, match="likelihood='poisson': expected counts"):
        going_on(fitted, likelihood="poisson").fit(X, np.full(30, -1.0))


def going_on(model: MetaGPRegressor, **kwargs) -> MetaGPRegressor:
    """Return a warm start that shares the fitted attributes of a model."""
    twin = MetaGPRegressor(**SMALL, **{"input_kernel": None, **kwargs}, warm_start=True)
    vars(twin).update({name: value for name, value in vars(model).items() if name not in twin.get_params()})
    return twin


def test_too_few_rows_to_hold_some_out():
    with pytest.raises(ValueError, match="early_stopping: 1 rows are too few to hold out 1"):
        MetaGPRegressor(**{"input_kernel": None, **SMALL, "n_inducing": "auto"}, early_stopping=True).fit(X[:1], Y[:1])


# --- parameters -------------------------------------------------------------------

WHOLE = "expected a whole number of at least"
PARAMETERS = [
    ("hidden_layer_sizes", (3, 0), "expected whole numbers of at least 1; got"),
    ("hidden_layer_sizes", (3.5,), "expected whole numbers of at least 1; got"),
    ("hidden_layer_sizes", ((3, 2), (2, 3)), "expected whole numbers of at least 1; got"),
    ("hidden_layer_sizes", "many", "expected whole numbers of at least 1; got 'many'"),
    ("activation", "sine", "expected a function or one of .*'tanh'.*; got 'sine'"),
    ("latent_dim", 0, f"{WHOLE} 1; got 0"),
    ("latent_dim", True, f"{WHOLE} 1; got True"),
    ("max_iter", 0, f"{WHOLE} 1; got 0"),
    ("max_iter", 1.5, f"{WHOLE} 1; got 1.5"),
    ("n_train_draws", 0, "expected 'auto' or a whole number of at least 1; got 0"),
    ("n_weight_draws", "two", f"{WHOLE} 1; got 'two'"),
    ("n_predict_draws", 1, f"{WHOLE} 2; got 1"),
    ("n_iter_no_change", 0, f"{WHOLE} 1; got 0"),
    ("n_inducing", 0, "expected 'auto' or a whole number of at least 1; got 0"),
    ("n_inducing", "some", "expected 'auto' or a whole number of at least 1; got 'some'"),
    ("batch_size", -5, "expected 'auto' or a whole number of at least 1; got -5"),
    ("learning_rate_init", -0.1, "expected a positive number; got -0.1"),
    ("learning_rate_init", np.inf, "expected a positive number; got inf"),
    ("tol", -1.0, "expected a number of at least 0; got -1.0"),
    ("validation_fraction", 1.0, "expected a number between 0 and 1; got 1.0"),
    ("early_stopping", "always", "expected True, False or 'auto'; got 'always'"),
    ("early_stopping", 1, "expected True, False or 'auto'; got 1"),
    ("early_stopping", None, "expected True, False or 'auto'; got None"),
    ("dtype", "float16", "expected 'auto' or 'float32' or 'float64'; got 'float16'"),
    ("dtype", np.float32, "expected 'auto' or 'float32' or 'float64'; got"),
    ("input_scaling", "rows", "expected 'per_column' or 'joint'; got 'rows'"),
    ("optimizer", "adam", "expected an optax optimizer, or None for Adam; got 'adam'"),
    ("weight_kernel", "gauss", "expected a kernel such as .*RBF.*'rbf'.*; got 'gauss'"),
    ("weight_kernel", ("rbf", "rbf", "rbf"), "expected one kernel, or a pair .*; got"),
    ("input_kernel", "gauss", "expected a kernel such as .*RBF.*'rbf'.*; got 'gauss'"),
    ("input_kernel", 3, "expected a kernel such as .*RBF.*'rbf'.*; got 3"),
    ("weight_gp", "local", r"expected 'shared' \(one GP\) or 'per_layer'; got 'local'"),
    ("conditional", "exact", "expected one of .*'diag', 'fitc', 'full', 'pathwise'.*; got 'exact'"),
    ("input_projection", "two", "expected a number of dimensions or a Projection; got 'two'"),
    ("local_layers", (2,), "the network has 2 layers of weights .*; got"),
    ("local_layers", (-3,), "the network has 2 layers of weights .*; got"),
]


@BOTH
def test_more_inducing_codes_than_codes_of_weights_are_refused_where_they_are_chosen(estimator):
    with pytest.raises(ValueError, match=r"^n_inducing: 14 inducing codes are more than .* \(13\); give at most 13"):
        estimator(**{**SMALL, "n_inducing": 14, "output_layer": "drawn"}).fit(X, Y > 0)


@BOTH
@pytest.mark.parametrize(("name", "value", "message"), PARAMETERS)
def test_parameter_error_names_the_parameter_and_what_is_expected(estimator, name, value, message):
    with pytest.raises(ValueError, match=f"^{name}: {message}"):
        estimator(**{**SMALL, name: value}).fit(X, Y > 0)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("likelihood", "cauchy", "expected one of .*'heteroscedastic', 'student_t', 'poisson'.*; got 'cauchy'"),
        ("noise_hold", 1.5, "expected a number from 0 to 1, or None; got 1.5"),
        ("noise", -1.0, "expected a positive number, or one per target; got -1.0"),
        ("noise", [0.1, 0.2], "expected a positive number, or one per target; got"),
        ("noise", "low", "expected a positive number, or one per target; got 'low'"),
    ],
)
def test_regressor_parameter_error_names_the_parameter_and_what_is_expected(name, value, message):
    with pytest.raises(ValueError, match=f"^{name}: {message}"):
        MetaGPRegressor(**{"input_kernel": None, **SMALL, name: value}).fit(X, Y)


# --- kernels and projections ------------------------------------------------------


@pytest.mark.parametrize("value", [-1.0, 0.0, np.nan, np.inf, [1.0, -1.0], np.ones((1, 1))])
@pytest.mark.parametrize("kernel", [kernels.RBF, kernels.Matern12, kernels.Matern32, kernels.Matern52])
def test_lengthscale_must_be_positive(kernel, value):
    with pytest.raises(ValueError, match=f"{kernel.__name__}: lengthscale must be a positive finite number.*; got"):
        kernel(value)


def test_period_must_be_positive():
    with pytest.raises(ValueError, match="Periodic: period must be a positive finite number.*; got -2"):
        kernels.Periodic(-2.0)


def test_a_lengthscale_for_every_column_must_match_the_columns():
    with pytest.raises(ValueError, match=r"lengthscale to be one value, or one per dimension \(2\); got 3 values"):
        MetaGPRegressor(**SMALL, input_kernel=kernels.RBF([1.0, 2.0, 3.0])).fit(X, Y)


def test_a_column_that_is_not_there():
    with pytest.raises(ValueError, match=r"ActiveDims: expected columns from 0 to 1, as .* has 2; got \(5,\)"):
        MetaGPRegressor(**SMALL, input_kernel=kernels.RBF().on(5)).fit(X, Y)


def test_unknown_names_in_fixed_and_bounds():
    with pytest.raises(ValueError, match=r"RBF: expected the names in fixed .* \['lengthscale'\]; got \['period'\]"):
        kernels.RBF(fixed=("period",))
    with pytest.raises(ValueError, match="RBF: bounds of lengthscale must be a pair 0 < lowest < highest"):
        kernels.RBF(bounds={"lengthscale": (2.0, 1.0)})


def test_a_period_must_be_given_for_projected_inputs():
    with pytest.raises(ValueError, match="input_kernel: with an input_projection, give the period"):
        MetaGPRegressor(**SMALL, input_kernel=kernels.Periodic(), input_projection=1).fit(X, Y)


@pytest.mark.usefixtures("fitted")
def test_a_weight_kernel_needs_its_period():
    with pytest.raises(ValueError, match="Periodic: the period is not known yet. Give `period=`"):
        MetaGPRegressor(**SMALL, weight_kernel=kernels.Periodic(), input_kernel=None).fit(X, Y)


def dot(a, b):
    return 1.0 + jnp.tanh(a @ b.T)


@pytest.mark.usefixtures("fitted")
@pytest.mark.parametrize("role", ["weight_kernel", "input_kernel"])
def test_a_custom_kernel_has_no_pathwise_draws(role):
    with pytest.raises(ValueError, match="Custom: .*no random features.*Use conditional='diag', 'fitc' or 'full'"):
        MetaGPRegressor(**SMALL, **{role: kernels.Custom(dot)}, output_layer="drawn").fit(X, Y)


@pytest.mark.parametrize("dims", [(), (0,), (2, -1)])
def test_projection_sizes_must_be_positive(dims):
    with pytest.raises(ValueError, match="Projection: dims must be positive whole numbers; got"):
        Projection(dims)


# --- questions --------------------------------------------------------------------


def test_quantile_levels_lie_between_0_and_1(fitted):
    with pytest.raises(ValueError, match="quantile: levels must lie strictly between 0 and 1, such as 0.5; got 1.5"):
        fitted.predict_distribution(X).quantile(1.5)


def test_log_prob_expects_a_target_a_row(fitted):
    with pytest.raises(ValueError, match="log_prob: expected 30 targets, one per row; got 3"):
        fitted.predict_distribution(X).log_prob(Y[:3])


def test_a_regression_has_no_probabilities(fitted):
    with pytest.raises(AttributeError, match="probabilities: this is a regression; use mean, std, quantile"):
        _ = fitted.predict_distribution(X).probabilities
