"""Columns and targets of tables reach the model as they were meant, or the place that is wrong is named."""

import datetime

import numpy as np
import pytest
from numpy.testing import assert_allclose

from metaprior.tables import TableError, learned_schema
from metaprior.tables.columns import most_frequent

pd = pytest.importorskip("pandas")


def frame_of(**columns):
    return pd.DataFrame({**columns, "y": np.linspace(0.1, 0.9, len(next(iter(columns.values()))))})


def learned(column, **options):
    """Return what a lone column beside a numeric target becomes."""
    schema = learned_schema(frame_of(c=column), "y", **options)
    return schema, schema.columns[0]


def encoded(column, others=None, *, allow_unseen=False, **options):
    schema, _ = learned(column, **options)
    return schema.encoded(pd.DataFrame({"c": column if others is None else others}), allow_unseen=allow_unseen)


# --- columns ------------------------------------------------------------------------


def test_categories_are_encoded_as_a_loop_would():
    column = ["red", "blue", "red", "green"]
    expected = [[float(value == known) for known in ("blue", "green", "red")] for value in column]
    assert_allclose(encoded(column), expected)
    assert learned(column)[0].features() == ["c=blue", "c=green", "c=red"]


def test_numbers_can_be_categories():
    assert learned([1, 2, 1], categorical=["c"])[1].values == ("1", "2")
    assert_allclose(encoded([1, 2, 1], [2.0, 1.0], categorical=["c"]), [[0, 1], [1, 0]])


def test_an_unseen_category_is_named_with_its_place_and_the_known_ones():
    with pytest.raises(
        TableError, match=r"row 2, column 'c': the category 'pink' .* has 'blue', 'red'.*--allow-unseen"
    ) as e:
        encoded(["red", "blue"], ["red", "pink"])
    assert e.value.fields() == {"row": 2, "column": "c", "value": "pink"}


def test_an_allowed_unseen_category_is_none_of_the_known():
    assert_allclose(encoded(["red", "blue"], ["pink", "red"], allow_unseen=True), [[0, 0], [0, 1]])


@pytest.mark.parametrize(
    "column", [[True, False, True], ["True", "FALSE", "true"], np.array([True, False, True], object)]
)
def test_true_is_one_and_false_is_zero(column):
    assert_allclose(encoded(column), [[1], [0], [1]])


def test_a_flag_takes_ones_and_zeros_and_nothing_else():
    assert_allclose(encoded([True, False], [0, 1, 1]), [[0], [1], [1]])
    with pytest.raises(TableError, match="row 2, column 'c': expected true or false; got 'maybe'"):
        encoded([True, False], ["true", "maybe"])


def test_dates_are_days_since_the_first_of_the_training_table():
    column = ["2024-03-01", "2024-02-28T12:00", "2024-03-01T00:00+02:00"]
    first = datetime.datetime(2024, 2, 28, 12, tzinfo=datetime.UTC)
    moments = [
        datetime.datetime(2024, 3, 1, tzinfo=datetime.UTC),
        first,
        datetime.datetime(2024, 2, 29, 22, tzinfo=datetime.UTC),
    ]
    expected = [[(moment - first).total_seconds() / 86400] for moment in moments]
    assert_allclose(encoded(column, dates={"c": None}), expected)
    assert_allclose(encoded(column, ["2024-02-27T12:00"], dates={"c": None}), [[-1]])


def test_dates_have_a_form_of_their_own():
    assert_allclose(encoded(["31.12.2023", "02.01.2024"], dates={"c": "%d.%m.%Y"}), [[0], [2]])
    with pytest.raises(TableError, match="row 1, column 'c': expected a date written as %d.%m.%Y; got '2024-01-05'"):
        encoded(["31.12.2023", "02.01.2024"], ["2024-01-05"], dates={"c": "%d.%m.%Y"})


def test_a_date_of_another_form_is_named_and_the_option_too():
    with pytest.raises(TableError, match=r"row 2, column 'c': .* got '31/12/2023'; .* --date 'c:%d.%m.%Y'"):
        learned(["2023-12-30", "31/12/2023"], dates={"c": None})


def test_text_that_is_all_iso_dates_is_dates_and_that_is_said():
    with pytest.warns(UserWarning, match="'c' is read as dates"):
        _, column = learned(["2024-01-01", "2024-01-05"])
    assert type(column).__name__ == "Date"
    assert type(learned(["2024-01-01", "2024-01-05"], categorical=["c"])[1]).__name__ == "Category"


@pytest.mark.parametrize(
    ("column", "options", "row"),
    [
        ([1.0, np.nan, 3.0], {}, 2),
        (["a", "b", None], {}, 3),
        ([None, True, False], {}, 1),
        (["2024-01-01", None, "2024-01-02"], {"dates": {"c": None}}, 2),
    ],
)
def test_a_missing_value_is_refused_with_its_place(column, options, row):
    with pytest.raises(TableError, match=rf"row {row}, column 'c': the value is missing.*--impute") as error:
        learned(column, **options)
    assert error.value.fields() == {"row": row, "column": "c"}


@pytest.mark.parametrize(("impute", "fill"), [("mean", 3.25), ("median", 2.5), ("most-frequent", 1.0)])
@pytest.mark.filterwarnings("ignore:missing values are filled in")
def test_a_gap_among_numbers_is_filled_from_the_training_table(impute, fill):
    column = [1.0, np.nan, 1.0, 4.0, 7.0]
    assert_allclose(encoded(column, impute=impute)[1], fill)
    assert_allclose(encoded(column, [np.nan, 100.0], impute=impute), [[fill], [100.0]])


@pytest.mark.filterwarnings("ignore:missing values are filled in")
def test_gaps_of_other_kinds_are_filled_too():
    assert_allclose(encoded(["b", "a", "b"], [None], impute="mean"), [[0, 1]])
    assert_allclose(encoded([True, False, True], [None], impute="median"), [[1]])
    assert_allclose(encoded(["2024-01-01", "2024-01-05"], [None], dates={"c": None}, impute="mean"), [[2]])


def test_filling_is_said_with_its_count():
    schema, _ = learned([1.0, 2.0, np.nan], impute="mean")
    with pytest.warns(UserWarning, match="filled in: 2 in 'c'"):
        schema.encoded(pd.DataFrame({"c": [np.nan, np.nan, 1.0]}))


def test_a_gap_in_a_later_table_is_refused_unless_filling_was_asked():
    with pytest.raises(TableError, match="row 2, column 'c': the value is missing"):
        encoded([1.0, 2.0], [1.0, np.nan])


def test_the_most_frequent_of_equals_is_the_first_in_order():
    assert most_frequent(np.array([3.0, 1.0, 3.0, 1.0, 2.0])) == 1.0


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([1.0, np.inf], "row 2, column 'c': expected a finite number; got 'inf'"),
        (["1", "2", "3", "x7"], r"row 4, column 'c': expected a finite number; got 'x7' .*--missing"),
        (["1", "2", "3", "4,5"], r"got '4,5' \(it is a number with --decimal ,\)"),
        (
            [f"name {i}" for i in range(60)],
            "60 different texts in 60 rows.*--ignore c.*--date c:FORMAT, --categorical c",
        ),
        ([[1], [2]], r"contains values such as \[1\]; expected numbers, texts"),
        (pd.to_timedelta([1, 2], unit="D"), "contains values such as Timedelta"),
        ([np.nan, np.nan], "column 'c' is empty; leave it out with --ignore c"),
    ],
)
def test_a_column_of_no_known_kind_is_told(column, message):
    with pytest.raises(TableError, match=message):
        learned(column)


def test_many_categories_are_taken_where_that_is_asked():
    assert len(learned([f"name {i}" for i in range(60)], categorical=["c"])[1].values) == 60


def test_numbers_written_as_text_are_numbers():
    assert_allclose(encoded(["1", "2.5", "-3e2"]), [[1], [2.5], [-300]])


def test_a_constant_column_is_left_out_and_that_is_said():
    frame = frame_of(a=[1, 2, 3], b=[7, 7, 7], c=["x", "x", "x"])
    with pytest.warns(UserWarning, match="columns with the same value in all rows are left out: 'b', 'c'"):
        schema = learned_schema(frame, "y")
    assert schema.features() == ["a"]
    assert schema.ignored == ("b", "c")
    assert_allclose(schema.encoded(frame[["a"]]), [[1], [2], [3]])


@pytest.mark.filterwarnings("ignore:columns with the same value")
def test_a_table_without_a_varying_column_is_refused():
    with pytest.raises(TableError, match="no column is left to predict 'y' from"):
        learned_schema(frame_of(a=[1, 1, 1]), "y")
    with pytest.raises(TableError, match="no column is left"):
        learned_schema(frame_of(a=[1, 2, 3]), "y", ignore=["a"])


# --- matching -----------------------------------------------------------------------


@pytest.fixture
def table():
    return frame_of(a=[1.0, 2.0, 3.0], b=["u", "v", "u"])


def test_columns_are_found_by_name_in_any_order(table):
    schema = learned_schema(table, "y")
    assert np.array_equal(schema.encoded(table[["y", "b", "a"]]), schema.encoded(table))


def test_absent_columns_are_named_with_the_likely_one(table):
    with pytest.raises(TableError, match=r"no column 'a', 'b' \(did you mean 'A'\?\); the model needs 'a', 'b'"):
        learned_schema(table, "y").encoded(pd.DataFrame({"A": [1.0]}))


@pytest.mark.parametrize("options", [{"ignore": ["Bb"]}, {"categorical": ["Bb"]}, {"dates": {"Bb": None}}])
def test_an_option_that_names_no_column_is_told(table, options):
    with pytest.raises(TableError, match="the table has no column 'Bb'"):
        learned_schema(table, "y", **options)


def test_an_absent_target_is_told_with_what_there_is(table):
    with pytest.raises(TableError, match=r"no column 'price'; it has 'a', 'b', 'y'"):
        learned_schema(table, "price")


def test_extra_columns_are_those_nobody_expects(table):
    schema = learned_schema(table.assign(n=[1, 2, 4]), "y", ignore=["n"])
    assert schema.extra(table.assign(n=0, new=1, key=2), ["key"]) == ["new"]


def test_places_of_a_column_are_those_of_its_features(table):
    schema = learned_schema(table.assign(z=[0.0, 1.0, 5.0]), "y")
    assert schema.features() == ["a", "b=u", "b=v", "z"]
    assert [schema.places(name) for name in ("a", "b", "z")] == [[0], [1, 2], [3]]
    with pytest.raises(TableError, match="there is no input column 'q'"):
        schema.places("q")


# --- the target ---------------------------------------------------------------------


def target_of(values, task=None):
    frame = pd.DataFrame({"x": np.arange(len(values)), "y": values})
    target = learned_schema(frame, "y", task=task).target
    return target, target.encoded(frame["y"])


@pytest.mark.parametrize(
    ("values", "task", "first"),
    [
        (["yes", "no", "yes"], "classification", "yes"),
        ([True, False, True], "classification", "true"),
        (["TRUE", "false", "TRUE"], "classification", "true"),
        ([0, 1, 1], "classification", 0),
        ([1.0, 2.0, 2.0], "classification", 1),
        (pd.Categorical(["a", "b", "a"]), "classification", "a"),
        ([0, 1, 2] * 10, "classification", 0),
        ([0, 1, 2] * 9, "regression", 0.0),
        (list(range(11)) * 20, "regression", 0.0),
        ([0.5, 1.5, 0.5], "regression", 0.5),
        ([1.0, 2.0, 3.5] * 20, "regression", 1.0),
    ],
)
def test_task_follows_from_the_target(values, task, first):
    target, found = target_of(values)
    assert target.task == task
    assert found[0] == first
    assert found.dtype.kind == {"classification": "i" if isinstance(first, int) else "U"}.get(task, "f")


def test_task_can_be_given():
    assert target_of([0, 1, 1], "regression")[1].tolist() == [0.0, 1.0, 1.0]
    assert target_of(list(range(30)), "classification")[1].tolist() == list(range(30))


@pytest.mark.parametrize(
    ("values", "task", "message"),
    [
        (["a", "b"], "regression", "row 1, column 'y': expected a finite number; got 'a'"),
        (
            [0.5, 1.0],
            "classification",
            "row 1, column 'y': expected a class, which is a whole number or a text; got 0.5",
        ),
        ([1.0, 1.0], None, "every value to predict is 1.0; expected at least two"),
        (["a", "a"], None, "every value to predict is a; expected at least two"),
        ([1.0, np.nan, 2.0], None, "row 2, column 'y': the value to predict is missing"),
        ([f"n{i}" for i in range(101)], None, "101 different values are too many for classes"),
        ([1.0, np.inf, 2.0], None, "row 2, column 'y': expected a finite number"),
    ],
)
def test_a_target_that_cannot_be_predicted_is_told(values, task, message):
    with pytest.raises(TableError, match=message):
        target_of(values, task)
