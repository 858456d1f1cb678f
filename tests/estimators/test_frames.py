"""Inputs that are dates, in data frames and arrays, and frames whose columns are no numbers."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import metaprior
from metaprior import MetaGPRegressor, kernels
from metaprior.baselines import ExactGPRegressor
from metaprior.dates import days_since, first_date
from metaprior.estimators.frames import check_origins, date_columns, known_dates, learned_dates
from metaprior.tables import learned_schema

N = 40
DAYS = np.arange(N) * 1.5
MOMENTS = np.datetime64("2024-02-28T00:00:00", "us") + (DAYS * 86400e6).astype("timedelta64[us]")
FRAME = pd.DataFrame({"day": MOMENTS, "height": np.linspace(1.0, 2.0, N)})
Y = np.sin(2 * np.pi * DAYS / 7)
#: Fitted in no time: what is asked here does not depend on the model.
MODEL = ExactGPRegressor(kernels.RBF(), noise=0.1, max_iter=0)
pytestmark = pytest.mark.filterwarnings("ignore:.*holds dates")


def polars():
    return pytest.importorskip("polars")


def frames(day):
    """Return the frame with dates in a form of their own."""
    return FRAME.assign(day=day)


DATES = {
    "nanoseconds": frames(MOMENTS.astype("datetime64[ns]")),
    "seconds": frames(MOMENTS.astype("datetime64[s]")),
    "UTC": frames(pd.DatetimeIndex(MOMENTS).tz_localize("UTC")),
    "another zone": frames(pd.DatetimeIndex(MOMENTS).tz_localize("Asia/Tokyo")),
    "arrow": frames(pd.Series(MOMENTS).astype("timestamp[us][pyarrow]")),
    "arrow with a zone": frames(
        pd.Series(pd.DatetimeIndex(MOMENTS).tz_localize("UTC")).astype("timestamp[us, UTC][pyarrow]")
    ),
}


@pytest.mark.parametrize("frame", DATES.values(), ids=DATES)
def test_dates_are_days_since_the_first_one(frame):
    changed, _ = learned_dates(frame)
    np.testing.assert_allclose(changed["day"], DAYS, atol=1e-9)
    assert list(changed.columns) == ["day", "height"]
    assert frame["day"].dtype != float, "the frame that was given is as it was"


def test_dates_are_those_of_the_command_line():
    schema = learned_schema(FRAME.assign(y=Y), "y", task="regression")
    np.testing.assert_array_equal(learned_dates(FRAME)[0].to_numpy(), schema.encoded(FRAME))


def test_polars_dates_are_those_of_pandas():
    pl = polars()
    for moments in (MOMENTS, MOMENTS.astype("datetime64[ms]")):
        changed, origins = learned_dates(pl.DataFrame({"height": FRAME["height"].to_numpy(), "day": moments}))
        np.testing.assert_allclose(changed["day"].to_numpy(), DAYS, atol=1e-9)
        assert changed.columns == ["height", "day"]
        assert origins == (None, "2024-02-28")
    dates = pl.DataFrame({"day": MOMENTS[::2]}).with_columns(pl.col("day").dt.date())
    np.testing.assert_array_equal(learned_dates(dates)[0]["day"].to_numpy(), DAYS[::2])


def test_a_polars_frame_is_fitted_as_a_pandas_one():
    pl = polars()
    zoned = pd.DatetimeIndex(MOMENTS).tz_localize("UTC")
    by_pandas = MODEL.fit(frames(zoned), Y).predict(frames(zoned))
    frame = pl.DataFrame({"day": MOMENTS, "height": FRAME["height"].to_numpy()})
    frame = frame.with_columns(pl.col("day").dt.replace_time_zone("UTC"))
    model = clone(MODEL).set_params(kernel=kernels.RBF().on("day", "height")).fit(frame, Y)
    np.testing.assert_array_equal(model.predict(frame), by_pandas)
    assert model.kernel_.column_names() == ["day", "height"]
    assert model.date_origins_ == ("2024-02-28+00:00", None)
    with pytest.raises(ValueError, match="has no date .* row 1"):
        model.predict(frame.with_columns(pl.when(pl.int_range(pl.len()) == 1).then(None).otherwise("day").alias("day")))


def test_an_arrow_table_is_fitted_as_a_pandas_frame():
    table = pytest.importorskip("pyarrow").Table.from_pandas(FRAME)
    expected = MODEL.fit(FRAME, Y).predict(FRAME)
    model = clone(MODEL).set_params(kernel=kernels.RBF().on("day", "height")).fit(table, Y)
    np.testing.assert_allclose(model.predict(table), expected, rtol=1e-9)


def test_text_columns_of_polars_are_named():
    frame = polars().DataFrame({"height": [1.0, 2.0], "city": ["a", "b"]})
    with pytest.raises(ValueError, match=r"expected numeric columns; \['city'\] are not: encode them"):
        MODEL.fit(frame, [0.0, 1.0])


def test_an_array_of_dates_is_read_as_days():
    model = MODEL.fit(MOMENTS[:, None], Y)
    np.testing.assert_array_equal(model.predict(MOMENTS[:, None]), model.predict(DAYS[:, None]))
    assert model.date_origins_ == ("2024-02-28",)
    np.testing.assert_array_equal(
        model.predict(MOMENTS[:3, None].astype("datetime64[s]")), model.predict(DAYS[:3, None])
    )


def test_a_period_is_in_days():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = MetaGPRegressor(input_kernel=kernels.Periodic().on("day"), hidden_layer_sizes=(5,), random_state=0)
        model.set_params(max_iter=1).fit(FRAME, Y)
    np.testing.assert_allclose(model.input_kernel_.inner.period, [7.0], rtol=0.02)


def test_the_reading_of_dates_is_told():
    with pytest.warns(
        UserWarning, match="column 'day' holds dates: it is read as days since 2024-02-28, so lengths and"
    ):
        MODEL.fit(FRAME, Y)


def test_predictions_count_from_the_first_date_of_the_fit(tmp_path):
    model = MODEL.fit(FRAME, Y)
    late = FRAME.iloc[10:15]
    expected = model.predict(FRAME)[10:15]
    np.testing.assert_allclose(model.predict(late), expected, rtol=1e-9)
    model.save(tmp_path / "model.metaprior")
    loaded = metaprior.load(tmp_path / "model.metaprior")
    assert loaded.date_origins_ == ("2024-02-28", None)
    np.testing.assert_allclose(loaded.predict(late), expected, rtol=1e-9)


def test_an_array_for_a_model_of_dates_has_days():
    model = MODEL.fit(FRAME, Y)
    with pytest.warns(UserWarning, match="valid feature names"):
        found = model.predict(np.column_stack([DAYS, FRAME["height"]]))
    np.testing.assert_allclose(found, model.predict(FRAME), rtol=1e-9)


def test_a_later_fit_without_dates_forgets_them():
    model = MODEL.fit(FRAME, Y).fit(FRAME[["height"]], Y)
    assert not hasattr(model, "date_origins_")
    assert model.predict(FRAME[["height"]]).shape == (N,)


GAPS = FRAME.assign(day=FRAME["day"].where(FRAME.index != 2))


@pytest.mark.parametrize(
    ("frame", "what"),
    [
        (GAPS, r"column 'day' has no date \(NaT\) in 1 rows, the first of them row 2. Fill them in, or leave"),
        (DATES["UTC"], "expected dates without a time zone in column 'day', as in the fit; got dates with one. Use tz"),
        (FRAME.assign(day=DAYS), "expected dates in column 'day', as in the fit; it has none"),
        (FRAME.assign(height=MOMENTS), "expected numbers in column 'height', as in the fit; got dates"),
        (FRAME.assign(height=MOMENTS - MOMENTS[0]), r"expected numbers or dates; \['height'\] hold durations. Divide"),
        (FRAME[["height", "day"]], "feature names"),
        (FRAME[["day"]], "feature names"),
    ],
)
def test_other_columns_than_those_of_the_fit_are_refused(frame, what):
    model = MODEL.fit(FRAME, Y)
    with pytest.raises(ValueError, match=what):
        model.predict(frame)


@pytest.mark.parametrize("X", [GAPS, np.where(DAYS == 3, np.datetime64("NaT"), MOMENTS)[:, None]])
def test_a_fit_with_a_missing_date_is_refused(X):
    with pytest.raises(ValueError, match="no date .NaT. in 1 rows, the first of them row 2"):
        MODEL.fit(X, Y)


def test_arrays_of_durations_are_refused():
    with pytest.raises(ValueError, match="hold durations. Divide them by a unit"):
        MODEL.fit((MOMENTS - MOMENTS[0])[:, None], Y)


@pytest.mark.parametrize(
    "day",
    [pd.Series(MOMENTS).dt.date, pd.Series(MOMENTS).astype(str), pd.Series(MOMENTS).astype(str).astype("category")],
)
def test_dates_that_are_texts_or_objects_are_refused_with_what_to_do(day):
    with pytest.raises(ValueError, match=r"\['day'\] are not: encode them .*pandas.to_datetime"):
        MODEL.fit(frames(day), Y)


@pytest.mark.parametrize(
    "origins",
    [("2024-01-01",), (None, None), ("someday", None), ("now", None), ("NaT", None), ["2024-01-01", None], (1, None)],
)
def test_first_dates_of_a_file_that_no_fit_leaves_are_refused(origins):
    with pytest.raises(ValueError, match="date_origins_: expected the first date, or None, of each of 2 columns"):
        check_origins(origins, 2)


def test_days_far_from_now_are_exact():
    far = np.array(["0001-01-01", "9999-12-31"], "datetime64[D]")
    first = first_date(far, has_zone=False)
    assert first == "0001-01-01"
    np.testing.assert_array_equal(days_since(far, first), [0, 3652058])


def test_a_frame_without_dates_is_left_as_it_is():
    plain = FRAME[["height"]]
    assert learned_dates(plain) == (plain, None)
    assert known_dates(plain, None, None) is plain
    assert date_columns([[1.0]]) == []


# --- categories -------------------------------------------------------------------------


def test_categories_are_encoded_by_a_column_transformer():
    table = pd.DataFrame({"city": ["Bern", "Rome"] * 20, "height": FRAME["height"]})
    encoder = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["city"]), remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    kernel = kernels.RBF().on("height") + kernels.RBF().on("city_Bern", "city_Rome")
    model = make_pipeline(encoder, ExactGPRegressor(kernel, noise=0.1, max_iter=0))
    y = np.where(table["city"] == "Bern", 1.0, -1.0) + table["height"]
    assert model.fit(table, y).score(table, y) > 0.95
    assert model[-1].kernel_.column_names() == ["height", "city_Bern", "city_Rome"]
