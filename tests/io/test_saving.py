"""A saved estimator comes back bit for bit, in another process too; a bad file is told, and runs nothing."""

import copy
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import optax
import pytest
from safetensors.numpy import save_file
from sklearn.base import is_regressor
from sklearn.exceptions import NotFittedError

import metaprior
from edited_files import put_together, taken_apart
from metaprior import MetaGPClassifier, MetaGPRegressor, Projection, baselines, kernels
from metaprior.io.saving import FORMAT, origin

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (30, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.standard_normal(30)
LABELS = np.array(["cold", "mild", "warm"])[np.digitize(X[:, 0], [-0.7, 0.7])]
TRAINED = {"hidden_layer_sizes": (3,), "max_iter": 20, "random_state": 0}
DRAWN = {**TRAINED, "n_predict_draws": 6}
SAMPLED = {"hidden_layer_sizes": (2,), "n_warmup": 5, "n_samples": 5, "n_chains": 2, "max_tree_depth": 3}
COMPOSED = kernels.Periodic([1.0, 2.0]) + 2 * kernels.RBF().on(0)
PROJECTION = Projection((3, 2), "tanh")
ESTIMATORS = {
    "global": MetaGPRegressor(**DRAWN, n_inducing=4, input_kernel=None),
    "local": MetaGPRegressor(
        **DRAWN, n_inducing=4, input_kernel=kernels.Periodic([1.0, 2.0]) + 2 * kernels.RBF().on(0)
    ),
    "projected": MetaGPRegressor(
        **DRAWN, n_inducing=4, input_kernel="rbf", input_projection=Projection((3, 2), "tanh")
    ),
    "per layer": MetaGPRegressor(
        **DRAWN, n_inducing=4, weight_gp="per_layer", conditional="full", likelihood="student_t", input_kernel=None
    ),
    "heteroscedastic": MetaGPRegressor(
        **DRAWN, n_inducing=4, heteroscedastic_weights=True, conditional="fitc", input_kernel=None
    ),
    "random state": MetaGPRegressor(
        **{"input_kernel": None, **DRAWN, "random_state": np.random.RandomState(3)}, n_inducing=4
    ),
    "classes": MetaGPClassifier(**DRAWN, n_inducing=4, activation="relu", input_kernel=None),
    "map": baselines.MAPRegressor(**TRAINED),
    "mfvi": baselines.MFVIClassifier(**DRAWN),
    "metann": baselines.MetaNNRegressor(**DRAWN),
    "dkl": baselines.DKLClassifier(**DRAWN, n_inducing=5),
    "ensemble": baselines.EnsembleRegressor(**TRAINED, n_members=2),
    "laplace": baselines.LaplaceRegressor(**DRAWN),
    "laplace kronecker": baselines.LaplaceClassifier(**DRAWN, structure="kronecker"),
    "hmc": baselines.HMCRegressor(**SAMPLED, random_state=0),
    "hmc metagp": baselines.HMCRegressor(**SAMPLED, prior="metagp", input_kernel="rbf", random_state=0),
    "exact gp": baselines.ExactGPRegressor(kernels.Matern32(), n_restarts=0, random_state=0),
}

pytestmark = pytest.mark.filterwarnings("ignore:the chains mix poorly", "ignore:the median distance", "ignore:the feat")


def fitted(name):
    model = ESTIMATORS[name]
    return model.fit(X, Y if is_regressor(model) else LABELS)


@pytest.fixture(scope="module")
def small():
    return MetaGPRegressor(**DRAWN, n_inducing=4, input_kernel=None).fit(X, Y)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.metaprior"


def assert_same_parameters(twin, model):
    first, second = ({k: v for k, v in m.get_params().items() if k != "random_state"} for m in (twin, model))
    assert str(first) == str(second)
    if isinstance(model.random_state, np.random.RandomState):
        assert copy.deepcopy(twin.random_state).randint(2**31) == copy.deepcopy(model.random_state).randint(2**31)
    else:
        assert twin.random_state == model.random_state


#: Of the rest the programs take long to compile.
DAILY = ("local", "classes", "map")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in DAILY)) for name in ESTIMATORS]
)
def test_what_is_loaded_answers_bit_for_bit_as_what_was_saved(name, path):
    model = fitted(name)
    model.save(path)
    twin = metaprior.load(path)
    assert type(twin) is type(model)
    assert_same_parameters(twin, model)
    assert vars(twin).keys() == vars(model).keys()
    assert np.array_equal(twin.predict(X), model.predict(X))
    assert np.array_equal(twin.sample_y(X, 2, 1), model.sample_y(X, 2, 1))
    if not is_regressor(model):
        assert np.array_equal(twin.predict_proba(X), model.predict_proba(X))
        assert twin.classes_.dtype == model.classes_.dtype


def test_another_process_answers_with_the_same_bits(small, path, tmp_path):
    small.save(path)
    np.save(tmp_path / "x.npy", X)
    program = (
        "import sys, numpy as np, metaprior as mp; x, m, y = sys.argv[1:]; np.save(y, mp.load(m).predict(np.load(x)))"
    )
    subprocess.run([sys.executable, "-c", program, tmp_path / "x.npy", path, tmp_path / "y.npy"], check=True)
    assert np.array_equal(np.load(tmp_path / "y.npy"), small.predict(X))


def test_a_loaded_model_goes_on_as_the_saved_one_would(path):
    model = MetaGPRegressor(**DRAWN, n_inducing=4, warm_start=True, input_kernel=None).fit(X, Y)
    model.save(path)
    assert np.array_equal(metaprior.load(path).fit(X, Y).predict(X), model.fit(X, Y).predict(X))


def test_names_of_columns_are_kept(path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["hour", "height"])
    model = baselines.MAPRegressor(**TRAINED).fit(frame, Y)
    model.save(path)
    assert list(metaprior.load(path).feature_names_in_) == ["hour", "height"]


def test_nothing_is_overwritten_unasked(small, path):
    path.write_text("precious")
    with pytest.raises(FileExistsError, match=r"exists; give another name, or pass overwrite=True"):
        small.save(path)
    assert path.read_text() == "precious"
    small.save(path, overwrite=True)
    assert np.array_equal(metaprior.load(path).predict(X), small.predict(X))


def test_an_unfitted_estimator_is_not_saved(path):
    with pytest.raises(NotFittedError):
        MetaGPRegressor(input_kernel=None).save(path)
    assert not path.exists()


def test_a_write_that_fails_leaves_the_old_file_and_no_other(small, path, monkeypatch):
    small.save(path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        small.save(path, overwrite=True)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_missing_folder_is_named(small, tmp_path):
    with pytest.raises(OSError, match="save: cannot write in the folder .*nowhere"):
        small.save(tmp_path / "nowhere" / "model.metaprior")


@pytest.mark.parametrize("part", [0.0, 0.001, 0.3, 0.9, 0.999])
def test_a_truncated_file_is_told(small, path, part):
    small.save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(part * len(content))])
    with pytest.raises(ValueError, match=r"load: .* is not a metaprior file, or is incomplete"):
        metaprior.load(path)


def test_an_altered_file_is_told(small, path):
    small.save(path)
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="was altered after it was written"):
        metaprior.load(path)


def test_no_altered_byte_goes_unseen(small, path):
    """One byte at many places: an error that speaks, or (in unused bytes of the header) the same numbers."""
    small.save(path)
    content, expected = path.read_bytes(), small.predict(X[:3])
    for place in np.linspace(0, len(content) - 1, 40).astype(int):
        altered = bytearray(content)
        altered[place] ^= 4
        path.write_bytes(altered)
        answer = _answer_or_error(path)
        assert answer.startswith("load:") if isinstance(answer, str) else np.array_equal(answer, expected)


def _answer_or_error(path):
    try:
        return metaprior.load(path).predict(X[:3])
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda p: p.write_bytes(b"hello"), "is not a metaprior file"),
        (lambda p: save_file({"a": np.zeros(3)}, p), "a safetensors file, but metaprior did not write it"),
        (lambda p: save_file({"a": np.zeros(3)}, p, {"format": "metaprior 99", "content": ""}), "update metaprior"),
    ],
)
def test_a_foreign_file_is_told(path, write, message):
    write(path)
    with pytest.raises(ValueError, match=message):
        metaprior.load(path)


def test_a_missing_file_is_named(path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        metaprior.load(path)


@pytest.mark.parametrize(
    "stranger",
    [
        "os:system",
        "builtins:eval",
        "subprocess:Popen",
        "metaprior.io.saving:os",
        "metaprior.io.saving:_Writer",
        "metaprior.io.saving:tempfile.mkstemp",
        "metaprior.nothing:Here",
        "metaprior.estimators.base:np",
        "metaprior.inference.training:Path",
    ],
)
def test_a_file_can_name_no_other_class(small, path, stranger):
    """Even with a right digest."""
    with_state(small, path, evil={"class": stranger, "fields": {"command": "echo"}})
    with pytest.raises(ValueError, match="cannot be read by the installed version"):
        metaprior.load(path)


@pytest.mark.parametrize("kind", ["_class__", "_setattr__", "_init__", "nothing"])
def test_a_file_can_name_no_other_kind_of_thing(small, path, kind):
    with_state(small, path, evil={kind: "arrays", "dtype": "mine"})
    with pytest.raises(ValueError, match=f"cannot be read by .*unexpected kind '{kind}'"):
        metaprior.load(path)


def test_a_file_of_bottomless_depth_is_refused(small, path):
    inner = '{"list": [' * 20_000 + "null" + "]}" * 20_000
    small.save(path)
    texts, arrays = taken_apart(path)
    put_together(path, texts, texts["content"].replace('"state": {', f'"state": {{"evil": {inner}, ', 1), arrays)
    with pytest.raises(ValueError, match="cannot be read by the installed version"):
        metaprior.load(path)


def with_state(model, path, **more):
    """Save the model with more in its state, and with a right digest."""
    model.save(path)
    texts, arrays = taken_apart(path)
    content = json.loads(texts["content"])
    content["estimator"]["state"] |= more
    put_together(path, texts, content, arrays)


# --- other versions -------------------------------------------------------------------


def test_a_file_of_the_first_format_loads():
    """Written by version 0.1.0; the numbers are what it predicted then."""
    old = Path(__file__).parents[1] / "files" / "format-1.metaprior"
    assert origin(old) == {"format": 1, "written_by": "0.1.0"}
    found = metaprior.load(old).predict([[-0.5], [0.0], [0.5]])
    np.testing.assert_allclose(found, [0.27335185, 0.90084971, 0.85963644], rtol=1e-4)


def test_a_file_that_is_not_understood_names_the_version_that_wrote_it(small, path, monkeypatch):
    monkeypatch.setattr("metaprior.io.saving.__version__", "0.0.7")
    small.save(path)
    monkeypatch.undo()
    assert origin(path) == {"format": FORMAT, "written_by": "0.0.7"}
    monkeypatch.setattr("metaprior.io.reading.named_class", lambda name: {}[name])  # all classes have gone
    with pytest.raises(ValueError, match=r"written by metaprior 0\.0\.7 .* load it with the version that wrote it"):
        metaprior.load(path)


def test_what_has_no_plain_form_is_refused_by_name(path):
    model = baselines.MAPRegressor(**{**TRAINED, "activation": lambda x: x}).fit(X, Y)
    with pytest.raises(TypeError, match="Your own functions have no plain form"):
        model.save(path)
    assert not path.exists()


def test_an_optimiser_is_left_out_and_that_is_said(path):
    model = baselines.MAPRegressor(**TRAINED, optimizer=optax.sgd(1e-3)).fit(X, Y)
    with pytest.warns(UserWarning, match="optimizer is not saved"):
        model.save(path)
    assert np.array_equal(metaprior.load(path).predict(X), model.predict(X))
