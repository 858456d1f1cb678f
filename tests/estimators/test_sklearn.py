"""scikit-learn's own conformance checks, none declared an expected failure.

The fast run trains less and draws fewer functions, so that some hundred fits take minutes; the slow one has true
defaults.
"""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from metaprior import MetaGPClassifier, MetaGPRegressor, baselines, kernels

TRAINED = {"hidden_layer_sizes": (10,), "max_iter": 100}
DRAWN = {**TRAINED, "n_predict_draws": 32}
QUICK = {**DRAWN, "n_train_draws": 2}
#: Their programs compile anew for every shape of data: minutes.
BASELINES = {
    "MAP": TRAINED,
    "MFVI": QUICK,
    "Laplace": DRAWN,
    "Ensemble": {**TRAINED, "n_members": 2},
    "MetaNN": QUICK,
    "DKL": {**QUICK, "n_inducing": 10, "max_iter": 400},
    "HMC": {"hidden_layer_sizes": (5,), "n_warmup": 100, "n_samples": 100, "n_chains": 2, "max_tree_depth": 6},
}


def both_kinds(settings):
    return [
        getattr(baselines, method + kind)(**own)
        for method, own in settings.items()
        for kind in ("Regressor", "Classifier")
    ]


@parametrize_with_checks([MetaGPRegressor(**DRAWN, input_kernel=None), MetaGPClassifier(**DRAWN, input_kernel=None)])
def test_scikit_learn_checks_hold(estimator, check):
    assert check(estimator) is None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the chains mix poorly")
@parametrize_with_checks(both_kinds(BASELINES))
def test_scikit_learn_checks_hold_for_baselines(estimator, check):
    assert check(estimator) is None


@pytest.mark.slow
@parametrize_with_checks(
    [
        MetaGPRegressor(),
        MetaGPClassifier(),
        MetaGPRegressor(input_kernel=None),
        MetaGPClassifier(input_kernel=None),
        MetaGPRegressor(input_kernel=kernels.RBF()),
        MetaGPClassifier(input_kernel="rbf"),
    ]
)
def test_scikit_learn_checks_hold_with_true_defaults(estimator, check):
    assert check(estimator) is None


@pytest.mark.slow
@parametrize_with_checks(both_kinds({"MAP": {}, "MFVI": {}, "MetaNN": {}, "DKL": {}, "Ensemble": {}, "Laplace": {}}))
def test_scikit_learn_checks_hold_for_baselines_with_true_defaults(estimator, check):
    assert check(estimator) is None
