"""The encoder of the command line as a transformer: scikit-learn's conventions, and the numbers of the command line."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from metaprior.baselines import ExactGPRegressor
from metaprior.kernels import RBF
from metaprior.tables import TableEncoder, TableError, learned_schema

pd = pytest.importorskip("pandas")

TABLE = pd.DataFrame(
    {
        "city": ["Bern", "Rome", "Oslo", "Rome"] * 5,
        "height": np.linspace(0.0, 1.0, 20),
        "sunny": [True, False] * 10,
        "day": pd.date_range("2024-02-28", periods=20),
        "same": 1.0,
    }
)
leaves_out = pytest.mark.filterwarnings("ignore:columns with the same value")


@parametrize_with_checks([TableEncoder(), TableEncoder(impute="median")])
@pytest.mark.filterwarnings("ignore:missing values are filled", "ignore:columns with the same value")
def test_scikit_learn_checks_hold(estimator, check):
    assert check(estimator) is None


@leaves_out
def test_a_table_is_encoded_as_on_the_command_line():
    schema = learned_schema(TABLE.assign(y=np.arange(20.0)), "y", ignore=["height"])
    encoder = TableEncoder(ignore=["height"]).fit(TABLE)
    np.testing.assert_array_equal(encoder.transform(TABLE), schema.encoded(TABLE))
    assert encoder.get_feature_names_out().tolist() == schema.features()
    assert encoder.columns_ == schema.columns
    assert encoder.left_out_ == schema.ignored == ("height", "same")


@leaves_out
def test_frames_come_out_with_names():
    found = TableEncoder().set_output(transform="pandas").fit_transform(TABLE)
    assert list(found.columns) == ["city=Bern", "city=Oslo", "city=Rome", "height", "sunny", "day"]
    assert found["day"].tolist() == list(range(20))


@leaves_out
def test_a_polars_frame_is_encoded_as_a_pandas_one():
    polars = pytest.importorskip("polars")
    encoder = TableEncoder().fit(TABLE)
    np.testing.assert_array_equal(encoder.transform(polars.from_pandas(TABLE)), encoder.transform(TABLE))


@leaves_out
def test_a_pipeline_reads_tables_and_names_its_features():
    kernel = RBF().on("height", "day") + RBF().on("city=Bern", "city=Oslo", "city=Rome")
    encoder = TableEncoder().set_output(transform="pandas")
    model = make_pipeline(encoder, ExactGPRegressor(kernel, noise=0.1, max_iter=0))
    y = np.where(TABLE["city"] == "Rome", 1.0, 0.0) + TABLE["height"]
    assert model.fit(TABLE, y).score(TABLE, y) > 0.9


@leaves_out
def test_a_value_that_was_not_seen_is_refused_or_is_none_of_the_known():
    other = TABLE.assign(city=["Bonn", *TABLE["city"][1:]])
    encoder = TableEncoder().fit(TABLE)
    with pytest.raises(TableError, match=r"'Bonn' was not in the training table.* none of them with allow_unseen=True"):
        encoder.transform(other)
    assert clone(encoder).set_params(allow_unseen=True).fit(TABLE).transform(other)[0, :3].tolist() == [0, 0, 0]


@leaves_out
def test_what_to_do_is_told_in_python():
    with pytest.raises(TableError, match=r"value is missing.* or fit with impute='median'"):
        TableEncoder().fit(TABLE.assign(height=np.where(TABLE["height"] > 0.5, np.nan, 1.0)))
    with pytest.raises(
        TableError, match=r"ignore=\['text'\]\), or say what it is .dates={'text': 'FORMAT'}, categorical"
    ):
        TableEncoder().fit(pd.DataFrame({"text": [f"word {number}" for number in range(99)]}))
    with pytest.raises(TableError, match=r"the table has no column 'citi' \(did you mean 'city'\?\)"):
        TableEncoder(categorical=["citi"]).fit(TABLE)
    with pytest.raises(TableError, match="expected at least one column that varies; got 1 columns with n_samples=20"):
        TableEncoder().fit(TABLE[["same"]])
