"""Data sets: formats, toy problems against their definitions, loaders against what is known of the sets."""

import datetime
import gzip
import io
import os
import struct
import subprocess
import sys
import zipfile
import zlib

import numpy as np
import pytest

from metaprior.periods import periods_of, starting_periods
from metaprior_reproduction import datasets
from metaprior_reproduction.datasets import DataError, handwriting, images, time_series

needs_files = pytest.mark.skipif(
    not os.environ.get("METAPRIOR_DATA"), reason="needs the data files: METAPRIOR_DATA names no folder that has them"
)


# --- formats -----------------------------------------------------------------------------------


def test_idx_is_read_as_it_is_defined_and_anything_else_is_refused(tmp_path):
    array = np.random.default_rng(0).integers(0, 256, (5, 3, 2), dtype=np.uint8)
    content = b"\0\0\x08\x03" + struct.pack(">III", 5, 3, 2) + array.tobytes()
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(content))
    np.testing.assert_array_equal(images.read_idx(path), array)
    for wrong in (content[:-1], content + b"x", b"\0\0\x0d" + content[3:], content[:9], b""):
        path.write_bytes(gzip.compress(wrong))
        with pytest.raises(DataError, match=r"a.gz: expected an IDX file"):
            images.read_idx(path)


def test_a_bitmap_is_read_as_it_was_written():
    ink = np.random.default_rng(0).integers(0, 2, (7, 13), dtype=np.uint8)
    rows = b"".join(b"\0" + np.packbits(1 - row).tobytes() for row in ink)

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    packed = zlib.compress(rows)
    header = struct.pack(">IIBBBBB", 13, 7, 1, 0, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", packed[:9]), (b"IDAT", packed[9:]), (b"IEND", b"")]
    png = b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)
    np.testing.assert_array_equal(handwriting.read_bitmap(png), ink)


def test_area_means_average_as_a_fine_grid_does():
    row = np.random.default_rng(0).random(105)
    fine = np.repeat(row, 28).reshape(28, 105).mean(axis=1)  # 105 * 28 pieces, 105 to an interval
    np.testing.assert_allclose(handwriting.area_means(105, 28) @ row, fine, rtol=1e-12)


def test_times_are_those_of_the_calendar():
    day = datetime.date(1983, 12, 30)
    dates = [day + datetime.timedelta(days=number) for number in range(800)]
    slow = [d.year + (d.timetuple().tm_yday - 0.5) / (366 if d.year % 4 == 0 else 365) for d in dates]
    np.testing.assert_allclose(time_series.days_to_years([d.isoformat() for d in dates]), slow, rtol=1e-15)
    np.testing.assert_allclose(time_series.days_to_years([f"{d:%Y%m%d}" for d in dates]), slow, rtol=1e-15)
    np.testing.assert_allclose(time_series.months_to_years(["1949-01", "1960-12"]), [1949 + 1 / 24, 1960 + 23 / 24])
    days = time_series.seconds_to_days(["2014-03-01 06:00:00", "2014-03-02 12:00:00"])
    np.testing.assert_allclose(days, [0.25, 1.5])


# --- toy problems and noise ----------------------------------------------------------------------


def test_fnp_is_the_published_draw():
    parts = datasets.fnp()
    x, y = parts["train"].X[:, 0], parts["train"].y
    np.testing.assert_allclose([x[0], y[0], y.mean()], [0.250213, 0.666024, 0.431575], atol=5e-7)
    assert ((x[:12] > 0) & (x[:12] < 0.6)).all()
    assert ((x[12:] > 0.8) & (x[12:] < 1)).all()
    grid = parts["grid"]
    assert (grid.X.min(), grid.X.max(), len(grid.X)) == (-1, 2, 500)
    np.testing.assert_allclose(grid.y[-1], 2 + np.sin(8) + np.sin(26))


def test_four_class_is_the_published_generator():
    state, rows = np.random.RandomState(0), []
    for centre, step in [((0.8, 1.5), (0.4, 0.4)), ((0.5, -0.2), (0.6, -0.1)), ((2.5, 1.0), (-0.1, 0.6))]:
        first = [centre[0] + step[0] * state.randn() for _ in range(25)]
        rows += [(x - 0.5, centre[1] + step[1] * state.randn() - 1) for x in first]
    rows += list(state.multivariate_normal([-0.5, 1.5], [[0.2, 0.1], [0.1, 0.1]], 25) - [0.5, 1])
    X, y = datasets.four_class()
    np.testing.assert_allclose(X, rows, rtol=1e-14)
    np.testing.assert_allclose(X[0], [1.00562094, -0.08174627], atol=5e-8)
    assert np.bincount(y).tolist() == [25, 25, 25, 25]


def test_x_sin_x_has_its_noise_and_longer_sets_continue_shorter_ones():
    (X, y), grid = datasets.x_sin_x(4000, seed=3)["train"], datasets.x_sin_x(10, seed=3)["grid"]
    noise = y - X[:, 0] * np.sin(X[:, 0])
    assert abs(noise.std() / 0.5 - 1) < 4 / np.sqrt(2 * 4000)
    assert 0 < X.min() < 0.1 < 9.9 < X.max() < 10
    short = datasets.x_sin_x(10, seed=3)["train"]
    np.testing.assert_array_equal(short.X, X[:10])
    np.testing.assert_array_equal(short.y, y[:10])
    np.testing.assert_allclose(grid.y[[0, -1]], [5 * np.sin(5), 15 * np.sin(15)])


def test_noise_images_have_their_distribution_and_repeat_with_the_seed():
    uniform, gaussian = datasets.uniform_noise(1000, 0), datasets.gaussian_noise(1000, 0, shape=(28, 28))
    assert (uniform.shape, gaussian.shape) == ((1000, 784), (1000, 28, 28))
    assert uniform.dtype == gaussian.dtype == np.float32
    count = uniform.size
    assert abs(uniform.mean(dtype=float) - 0.5) < 4 * np.sqrt(1 / 12 / count)
    assert 0 <= uniform.min() < 0.001 < 0.999 < uniform.max() <= 1
    edge = 0.15865525393145707  # P(n < -1)
    for share in ((gaussian == 0).mean(), (gaussian == 1).mean()):
        assert abs(share - edge) < 4 * np.sqrt(edge * (1 - edge) / count)
    assert (gaussian.min(), gaussian.max()) == (0, 1)
    np.testing.assert_array_equal(uniform, datasets.uniform_noise(1000, 0))
    assert (uniform != datasets.uniform_noise(1000, 1)).any()
    with pytest.raises(ValueError, match="shape: expected the lengths of an image"):
        datasets.uniform_noise(3, 0, shape=())


# --- loaders on the real files -----------------------------------------------------------------------

IMAGES = [
    (datasets.mnist, "train", 60000, 0.1307, 0.3081),
    (datasets.mnist, "test", 10000, 0.1325, 0.3105),
    (datasets.fashion_mnist, "train", 60000, 0.2860, 0.3530),
    (datasets.fashion_mnist, "test", 10000, 0.2868, 0.3524),
    (datasets.kmnist, "test", 10000, 0.1846, None),
    (datasets.notmnist, "test", 10000, 0.4266, None),
]


@needs_files
@pytest.mark.parametrize(("load", "part", "count", "mean", "std"), IMAGES)
def test_images_are_in_the_unit_interval_with_their_known_moments(load, part, count, mean, std):
    data = load(part)
    assert (data.X.shape, data.X.dtype, data.y.dtype) == ((count, 784), np.float32, np.int64)
    assert (data.X.min(), data.X.max()) == (0, 1)
    assert data.X.mean(dtype=float) == pytest.approx(mean, abs=5e-5)
    if std is not None:
        assert data.X.std(dtype=float) == pytest.approx(std, abs=5e-5)
    counts = np.bincount(data.y)
    assert len(counts) == len(data.classes) == 10
    if load is not datasets.mnist:
        assert (counts == count // 10).all()
    assert data.licence == datasets.licence(load.__name__.replace("_", "-"))


@needs_files
def test_mnist_begins_as_it_is_known_to():
    X, y = datasets.mnist("train", shape=(28, 28))
    assert y[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert round(float(X[0, 5, 12] * 255)) == 3  # the first pixel that is not black
    assert not X[0, :5].any()
    assert datasets.mnist("test", shape=(28, 28, 1)).X.shape == (10000, 28, 28, 1)


def test_an_unknown_part_or_shape_is_refused():
    with pytest.raises(ValueError, match=r"mnist: expected part to be one of \['train', 'test'\]; got 'valid'"):
        datasets.mnist("valid")
    with pytest.raises(ValueError, match=r"kmnist: expected part to be one of \['test'\]; got 'train'"):
        datasets.kmnist("train")
    with pytest.raises(ValueError, match=r"shape: expected 784 pixels.*got \(28, 27\)"):
        datasets.mnist(shape=(28, 27))
    with pytest.raises(ValueError, match="omniglot: expected part"):
        datasets.omniglot("all")


@needs_files
def test_omniglot_has_twenty_drawings_a_character_read_as_another_reader_does():
    image = pytest.importorskip("matplotlib.image", reason="the other reader of PNG is matplotlib")
    data = datasets.omniglot("small1", side=105, shape=(105, 105))
    assert (data.X.shape, len(data.classes)) == ((2720, 105, 105), 136)
    assert (np.bincount(data.y) == 20).all()
    name = "images_background_small1/Balinese/character02/0109_03.png"
    with zipfile.ZipFile(datasets.fetch("other/omniglot/images_background_small1.zip")) as archive:
        other = image.imread(io.BytesIO(archive.read(name)))
    assert data.classes[data.y[22]] == "Balinese/character02"
    np.testing.assert_array_equal(data.X[22], 1 - other)
    small = datasets.omniglot("small1")
    np.testing.assert_allclose(small.X.mean(axis=1), data.X.mean(axis=(1, 2)), rtol=1e-5)


#: Rows, features, splits of the nine sets.
SIZES = {
    "bostonHousing": (506, 13, 20),
    "concrete": (1030, 8, 20),
    "energy": (768, 8, 20),
    "kin8nm": (8192, 8, 20),
    "naval-propulsion-plant": (11934, 16, 20),
    "power-plant": (9568, 4, 20),
    "protein-tertiary-structure": (45730, 9, 5),
    "wine-quality-red": (1599, 11, 20),
    "yacht": (308, 6, 20),
}


@needs_files
@pytest.mark.parametrize("name", datasets.UCI)
def test_uci_sets_take_their_columns_as_their_index_files_say(name):
    data = datasets.uci(name)
    rows, features, _ = SIZES[name]
    assert (data.X.shape, data.y.shape, len(data.columns)) == ((rows, features), (rows,), features)
    table = np.loadtxt(datasets.fetch(f"uci/{name}/data.txt"))
    index = np.loadtxt(datasets.fetch(f"uci/{name}/index_features.txt"), dtype=int)
    np.testing.assert_array_equal(data.X, table[:, index])
    np.testing.assert_array_equal(data.y, table[:, int(datasets.fetch(f"uci/{name}/index_target.txt").read_text())])
    assert "CC BY-NC 4.0" in repr(data)


@needs_files
@pytest.mark.parametrize("name", datasets.UCI)
def test_uci_splits_part_the_rows_in_nine_tenths_and_one(name):
    rows, _, count = SIZES[name]
    splits = datasets.uci_splits(name)
    assert len(splits) == count == int(datasets.fetch(f"uci/{name}/n_splits.txt").read_text())
    for train, test in splits:
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(rows))
        assert abs(len(test) - rows / 10) <= 1
    assert len({tuple(np.sort(test)) for _, test in splits}) == count
    (third,) = datasets.uci_splits(name, [3])
    np.testing.assert_array_equal(third[1], splits[3][1])


def test_unknown_sets_splits_and_series_are_refused():
    with pytest.raises(ValueError, match=r"uci: expected one of \['bostonHousing'.*got 'boston'"):
        datasets.uci("boston")
    with pytest.raises(ValueError, match=r"uci_splits: protein-tertiary-structure has splits 0 to 4; got \[5, -1\]"):
        datasets.uci_splits("protein-tertiary-structure", [0, 5, -1])
    with pytest.raises(ValueError, match=r"series: expected one of \['co2'.*got 'CO2'"):
        datasets.series("CO2")


#: Rows, first time, last time, first value, last value of every series.
SERIES = {
    "co2": (820, 1958 + 5 / 24, 2026 + 11 / 24, 315.71, 431.44),
    "co2-weekly": (2225, 1958 + 87.5 / 365, 2001 + 362.5 / 365, 316.1, 371.5),
    "airline": (144, 1949 + 1 / 24, 1960 + 23 / 24, 112, 432),
    "sunspots": (309, 1700, 2008, 5, 2.9),
    "sunspots-monthly": (2820, 1749 + 1 / 24, 1983 + 23 / 24, 58.0, 33.4),
    "min-temperatures": (3650, 1981 + 0.5 / 365, 1990 + 364.5 / 365, 20.7, 13.0),
    "max-temperatures": (3650, 1981 + 0.5 / 365, 1990 + 364.5 / 365, 38.1, 24.6),
    "elnino": (732, 1950 + 1 / 24, 2010 + 23 / 24, 23.11, 22.07),
    "electrical-equipment": (257, 1995 + 1 / 24, 2016 + 9 / 24, 66.19, 97.86),
    "nile": (100, 1871, 1970, 1120, 740),
    "electricity-victoria": (17520, 0, 365 - 1 / 48, 3.9146, 4.2170),
    "electricity-france": (17520, 0, 730 - 1 / 24, 76259, 63977),
    "yosemite": (18721, 0, 65, 27.8, 41.4),
}


@needs_files
@pytest.mark.parametrize("name", datasets.SERIES)
def test_series_run_from_their_first_to_their_last_value_in_order(name):
    rows, first, last, start, end = SERIES[name]
    data = datasets.series(name)
    assert (data.X.shape, data.y.shape, data.X.dtype, data.y.dtype) == ((rows, 1), (rows,), float, float)
    np.testing.assert_allclose([data.X[0, 0], data.X[-1, 0], data.y[0], data.y[-1]], [first, last, start, end])
    assert (np.diff(data.X[:, 0]) > 0).all()
    assert np.isfinite(data.y).all()
    assert data.columns == (("year",) if first > 1000 else ("day",))


#: What is known of their periods, in their own units: the year, the day, the week (of which the French load depends
#: more than that of Victoria), and the sunspots' cycle of about 11 years.
PERIODS = {
    "co2": (0.99, 1.01),
    "co2-weekly": (0.99, 1.01),
    "airline": (0.99, 1.01),
    "sunspots": (10.5, 11.5),
    "sunspots-monthly": (10.5, 11.5),
    "min-temperatures": (0.99, 1.01),
    "max-temperatures": (0.99, 1.01),
    "elnino": (0.99, 1.01),
    "electrical-equipment": (0.99, 1.01),
    "electricity-victoria": (0.99, 1.01),
    "electricity-france": (6.93, 7.07),
    "yosemite": (0.99, 1.01),
}


@needs_files
@pytest.mark.parametrize("name", PERIODS)
def test_the_known_period_of_a_series_is_the_one_that_a_periodic_kernel_starts_from(name):
    data, (low, high) = datasets.series(name), PERIODS[name]
    assert low < starting_periods(data.X, data.y[:, None])[0] < high


@needs_files
def test_the_day_and_the_week_are_the_two_first_periods_of_electricity():
    for name in ("electricity-victoria", "electricity-france"):
        data = datasets.series(name)
        found = periods_of(data.X[:, 0], data.y[:, None]).period[:2]
        assert sorted(found) == pytest.approx([1, 7], rel=0.01)


@needs_files
def test_periods_have_the_unit_of_the_inputs():
    data = datasets.series("airline")
    months = np.arange(144.0)[:, None]
    assert starting_periods(months, data.y[:, None])[0] == pytest.approx(12, rel=0.01)


@needs_files
def test_both_co2_series_agree_where_they_overlap():
    month, week = datasets.series("co2"), datasets.series("co2-weekly")
    between = np.interp(week.X[:, 0], month.X[:, 0], month.y)
    assert np.abs(between - week.y).mean() < 0.5  # ppm; the season's swing is about 6


@needs_files
def test_mushrooms_are_one_hot_and_named():
    data = datasets.mushroom()
    assert (data.X.shape, data.X.dtype, len(data.columns)) == ((8124, 117), np.float32, 117)
    assert np.bincount(data.y).tolist() == [4208, 3916]
    assert (data.X.sum(axis=1) == 22).all()
    attributes = np.array([column.split("=")[0] for column in data.columns])
    for attribute in set(attributes):
        assert (data.X[:, attributes == attribute].sum(axis=1) == 1).all()
    assert len(set(attributes)) == 22
    column = {name: data.X[:, number] for number, name in enumerate(data.columns)}
    assert column["stalk-root=missing"].sum() == 2480
    # From the description: this rule of UCI's finds all poisonous ones but 120, and no edible one.
    suspect = 1 - column["odor=almond"] - column["odor=anise"] - column["odor=none"]
    assert (data.y - suspect).sum() == 120
    assert (suspect <= data.y).all()


@needs_files
def test_data_unpack_to_inputs_and_targets():
    data = datasets.uci("yacht")
    X, y = data
    assert X is data.X
    assert y is data.y


def test_importing_the_loaders_brings_in_nothing_heavy():
    heavy = ("jax", "scipy", "sklearn", "pandas", "pooch")
    code = f"import sys, metaprior_reproduction.datasets; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
