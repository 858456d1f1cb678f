"""Values survive a table: categories and numbers come back as they were."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal

from chosen import few

TEXTS = st.lists(st.text(st.characters(codec="utf-8"), max_size=4), min_size=1, max_size=8)


@few
@given(column=TEXTS, shown=st.data())
def test_a_category_is_read_back_from_its_zeros_and_ones(column, shown):
    pd = pytest.importorskip("pandas")
    from metaprior.tables.columns import Category

    learned = Category.learned(pd.Series(column, dtype=object, name="c"), None)
    later = shown.draw(st.lists(st.sampled_from(column), min_size=1, max_size=5))
    encoded = learned.encoded(pd.Series(later, dtype=object, name="c"), False)
    assert_array_equal(encoded.sum(axis=1), 1)
    assert [learned.values[place] for place in np.argmax(encoded, axis=1)] == [text.strip() for text in later]


@few
@given(values=arrays(np.float64, 5, elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_numbers_come_back_from_a_table_bit_for_bit(values):
    pd = pytest.importorskip("pandas")
    from metaprior.tables import read_table, write_table

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        write_table(pd.DataFrame({"x": values}), path)
        found = read_table(path)["x"].to_numpy()
    assert (found.dtype, found.tobytes()) == (values.dtype, values.tobytes())
