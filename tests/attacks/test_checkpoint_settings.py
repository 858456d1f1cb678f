"""A checkpoint is continued by its own run alone: another value of any parameter gives its own bits, or is refused."""

import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from metaprior.io.checkpoints import Checkpoint
from other_settings import ESTIMATORS, OTHERS, Case, bounded, cases_of, estimator, parameters_of

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (14, 2)) * [1.0, 3.0]
Y = np.sin(3 * X[:, 0]) + 0.1 * RNG.standard_normal(14)
#: The estimator that takes least is tried with all values in every run of the tests.
QUICK = "MAPRegressor"
#: And a MetaGP with those whose fits were once mixed without a word.
BOUNDED = {"input_kernel": bounded(3.0)}
ONCE_MIXED = [
    Case("activation", "relu", BOUNDED),
    Case("input_kernel", "matern32", BOUNDED),
    Case("input_kernel", bounded(2.0), BOUNDED),
    Case("weight_kernel", "matern32", BOUNDED),
    Case("conditional", "full", BOUNDED),
    Case("noise_hold", 0.4, BOUNDED),
]

#: How a checkpoint of another run is refused, and how one that would keep several runs side by side is.
REFUSALS = ("belongs to another run", "checkpoint: expected n_restarts=0")


def fitted(name: str, folder: Path | None, parameters: dict[str, Any]) -> dict[str, np.ndarray]:
    """Fit a small estimator and return its result."""
    target = Y if name.endswith("Regressor") else Y > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tiny fits have much to warn of
        model = estimator(name, **parameters).fit(X, target, checkpoint=folder, every=50)
        predictive = model.predict_distribution(X)
    moments = [predictive.mean, predictive.std] if target is Y else [predictive.probabilities]
    history = model.log_joint_history_ if name.startswith("HMC") else model.elbo_history_
    return {"history": history, "moments": np.array(moments), "steps": np.asarray(model.n_iter_)}


class Killed(Exception):
    """The end of a fit that is to be resumed."""


class Kept:
    """Folders of fits that were killed after their first checkpoint, and of such as ended, by their parameters."""

    def __init__(self, root: Path) -> None:
        self.root, self.folders = root, dict[str, tuple[Path, Path]]()

    def copies(self, name: str, parameters: dict[str, Any], to: Path) -> tuple[Path, Path]:
        """Return a copy of both folders of a fit."""
        known = name + repr(sorted(parameters.items()))
        if known not in self.folders:
            place = self.root / str(len(self.folders))
            self.folders[known] = place / "killed", place / "ended"
            self._make(name, parameters, *self.folders[known])
        for folder in self.folders[known]:
            shutil.copytree(folder, to / folder.name)
        return to / "killed", to / "ended"

    def _make(self, name: str, parameters: dict[str, Any], killed: Path, ended: Path) -> None:
        save = Checkpoint.save

        def save_and_die(self: Checkpoint, *arguments: Any) -> None:
            save(self, *arguments)
            if self.folder in (killed, killed / "member1"):
                raise Killed

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Checkpoint, "save", save_and_die)
            with pytest.raises(Killed):
                fitted(name, killed, parameters)
        fitted(name, ended, parameters)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return Kept(tmp_path_factory.mktemp("kept"))


def attacked(kept: Kept, tmp_path: Path, name: str, case: Case) -> int:
    """Continue both checkpoints with the other value; return how many were refused."""
    refused, alone, changed = 0, None, {**case.same, case.name: case.value}
    for folder in kept.copies(name, case.same, tmp_path):
        try:
            result = fitted(name, folder, changed)
        except ValueError as error:
            if not any(words in str(error) for words in REFUSALS):
                raise
            refused += 1
            continue
        alone = fitted(name, None, changed) if alone is None else alone
        for key in alone:
            np.testing.assert_array_equal(result[key], alone[key], err_msg=f"{name} {case} {folder.name} {key}")
    return refused


def shown(case: object) -> str | None:
    return case.name if isinstance(case, Case) else None


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_parameter_has_another_value(name):
    """A new parameter is tried as well: without another value for it this test fails."""
    assert set(parameters_of(name)) <= set(OTHERS)
    assert {case.name for case in cases_of(name)} == set(parameters_of(name))
    for case in cases_of(name):
        usual = estimator(name, **case.same).get_params(deep=False)[case.name]
        assert usual != case.value, case


@pytest.mark.parametrize("case", cases_of(QUICK), ids=shown)
def test_another_value_is_refused_or_gives_its_own_bits(kept, tmp_path, case):
    attacked(kept, tmp_path, QUICK, case)


@pytest.mark.parametrize("case", ONCE_MIXED, ids=shown)
def test_another_static_part_is_refused(kept, tmp_path, case):
    assert attacked(kept, tmp_path, "MetaGPRegressor", case) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "case"), [(name, case) for name in ESTIMATORS if name != QUICK for case in cases_of(name)], ids=shown
)
def test_another_value_of_any_estimator_is_refused_or_gives_its_own_bits(kept, tmp_path, name, case):
    attacked(kept, tmp_path, name, case)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == QUICK else pytest.mark.slow) for name in ESTIMATORS]
)
def test_the_same_values_are_continued(kept, tmp_path, name):
    """Without this, refusing everything would pass."""
    alone = fitted(name, None, {})
    for folder in kept.copies(name, {}, tmp_path):
        result = fitted(name, folder, {})
        for key in alone:
            np.testing.assert_array_equal(result[key], alone[key])
