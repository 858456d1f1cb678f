"""scikit-learn's own conformance checks, none declared an expected failure.

The fast run trains less and draws fewer functions, so that a hundred fits take minutes; the slow one has true defaults.
"""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from metaprior import MetaGPClassifier, MetaGPRegressor, kernels

QUICK = {"hidden_layer_sizes": (20,), "max_iter": 300, "num_predict_draws": 32, "num_train_draws": 2}


@parametrize_with_checks([MetaGPRegressor(**QUICK), MetaGPClassifier(**QUICK)])
def test_scikit_learn_checks_hold(estimator, check):
    assert check(estimator) is None


@pytest.mark.slow
@parametrize_with_checks(
    [
        MetaGPRegressor(),
        MetaGPClassifier(),
        MetaGPRegressor(input_kernel=kernels.RBF()),
        MetaGPClassifier(input_kernel="rbf"),
    ]
)
def test_scikit_learn_checks_hold_with_true_defaults(estimator, check):
    assert check(estimator) is None
