"""A fitted kernel, and how it was chosen, in words."""

import pytest

from metaprior import kernels
from metaprior.cli.describe import kernel_rows
from metaprior.cli.kernel_phrases import kernel_phrase

FEATURES = ["day", "price", "colour=red"]


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (kernels.Periodic(7.0).on(0), "a wave in 'day' that repeats every 7 days"),
        (kernels.RBF(2.5).on(1), "a smooth function of 'price' (over 2.5)"),
        (kernels.Matern12([30.0, 2.0]).on(0, 1), "a rough function of 'day' (over 30 days), 'price' (over 2)"),
        (
            2.0 * kernels.Periodic(7.0).on(0) + kernels.Linear().on(0),
            "a wave in 'day' that repeats every 7 days, plus a straight line in 'day'",
        ),
        (
            (kernels.Periodic(7.0).on(0) + kernels.Constant(1.0)) * kernels.Matern32(90.0).on(0),
            "(a wave in 'day' that repeats every 7 days, plus a constant) times a fairly smooth function of 'day' "
            "(over 90 days)",
        ),
    ],
)
def test_a_kernel_has_words(kernel, words):
    assert kernel_phrase(kernel, FEATURES, {"day": "days"}) == words


def test_many_columns_are_not_all_named():
    words = kernel_phrase(kernels.RBF(1.0), list("abcdef"), {})
    assert words.endswith("'d' (over 1) and 2 more columns")


def test_the_kernel_is_told_as_code_in_words_and_with_its_distance_from_the_next_one():
    search = [
        {"kernel": "periodic + rbf", "bound": 10.0, "taken": True},
        {"kernel": "rbf", "bound": -35.2, "taken": False},
    ]
    data = {"input_kernel": "RBF(0.123456789)", "input_kernel_in_words": "smooth", "kernel_search": search}
    rows = dict(kernel_rows(data))
    assert rows["input kernel"] == "RBF(0.1235)"
    assert rows["in words"] == "smooth"
    assert rows["chosen"] == "periodic + rbf, 45.2 nats above rbf, of 2 candidates"
    without = {"input_kernel": None, "input_kernel_in_words": None, "kernel_search": None}
    assert dict(kernel_rows(without)) == {"input kernel": "none: the weights are the same at every input"}
