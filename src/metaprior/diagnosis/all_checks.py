"""`diagnose`: all checks of a fitted estimator, one after another."""

from typing import Any

from metaprior.diagnosis.checks import CHECKS, compared_with_nuts, refuse_large
from metaprior.diagnosis.finding import Diagnosis, Finding, LeftOut
from metaprior.diagnosis.subject import Subject


def diagnose(model: Any, X: Any, y: Any, *, rows: str = "auto", nuts: bool = False, random_state: int = 0) -> Diagnosis:
    """Look at a fitted estimator and say what is in order, what is not, and which parameter to change.

    Parameters
    ----------
    model : fitted estimator
        `MetaGPRegressor`, `MetaGPClassifier` or a baseline, alone or at the end of a pipeline or a search. Of any
        other scikit-learn regressor with `predict(X, return_std=True)`, and of any classifier with `predict_proba`,
        only the predictions are looked at.
    X : array-like of shape (n_samples, n_features)
        Rows that the model has not seen, if there are any: only they show whether it is overconfident or not confident
        enough. Of more than 2,000 rows, 2,000 are looked at.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        The targets of these rows.
    rows : {"auto", "held_out", "training"}, default="auto"
        Whether the model was fitted to these rows. "auto" compares them with the rows that the model keeps (with an
        integrated output layer and Gaussian noise), and otherwise takes them as held out; the report says which.
    nuts : bool, default=False
        Whether to compare the posterior with that of NUTS. That takes minutes, needs the extra `hmc`, and is for
        small networks only: an error says what is too large.
    random_state : int, default=0
        Determines the draws that the tests use.

    Returns
    -------
    Diagnosis
        Printing it gives a report; `ok` says whether nothing needs to be changed.

    Examples
    --------
    >>> import numpy as np
    >>> import metaprior
    >>> X = np.random.default_rng(0).uniform(-2, 2, (80, 1))
    >>> y = np.sin(3 * X[:, 0]) + 0.1 * np.random.default_rng(1).standard_normal(80)
    >>> model = metaprior.MetaGPRegressor(input_kernel="rbf", random_state=0).fit(X[:60], y[:60])
    >>> metaprior.diagnose(model, X[60:], y[60:])["convergence"].severity
    'ok'
    """
    subject = Subject(model, X, y, rows=rows, seed=random_state)
    if nuts:
        refuse_large(subject)
    answers = [check(subject) for check in CHECKS]
    if nuts:
        answers.append(compared_with_nuts(subject))
    findings = tuple(answer for answer in answers if isinstance(answer, Finding))
    left_out = tuple(answer for answer in answers if isinstance(answer, LeftOut))
    return Diagnosis(subject.title, findings, left_out)
