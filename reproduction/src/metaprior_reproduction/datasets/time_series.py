"""Real series, most of them periodic: one column of times in years or days, and one value per time."""

import csv
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from metaprior_reproduction.datasets.data import Data
from metaprior_reproduction.datasets.files import fetch, licence, registered

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


# --- times ---------------------------------------------------------------------------


def months_to_years(dates: list[str]) -> np.ndarray:
    """Return "1949-01" as 1949 + 1 / 24, the middle of a month; months count as equally long."""
    return 1970 + (np.array(dates, "datetime64[M]").astype(np.int64) + 0.5) / 12


def days_to_years(dates: list[str]) -> np.ndarray:
    """Return "1981-01-01" (or "19810101") as the year plus the fraction of it that has passed at noon."""
    days = np.array([f"{d[:4]}-{d[4:6]}-{d[6:]}" if len(d) == 8 else d for d in dates], "datetime64[D]")
    years = days.astype("datetime64[Y]")
    first, following = years.astype("datetime64[D]"), (years + 1).astype("datetime64[D]")
    return (
        1970 + years.astype(np.int64) + ((days - first).astype(np.int64) + 0.5) / (following - first).astype(np.int64)
    )


def seconds_to_days(dates: list[str]) -> np.ndarray:
    """Return "2014-01-01 00:30:00" as days since the first midnight."""
    seconds = np.array(dates, "datetime64[s]")
    return (seconds - seconds[0].astype("datetime64[D]")).astype(np.int64) / 86400


def _named_months_to_years(dates: list[str]) -> np.ndarray:
    """Return "Jan-1-1995" as `months_to_years` does, with English names whatever the user's language."""
    return months_to_years([f"{date[-4:]}-{_MONTHS.index(date[:3]) + 1:02d}" for date in dates])


def _years(dates: list[str]) -> np.ndarray:
    return np.array(dates, float)


# --- series --------------------------------------------------------------------------


class _Source(NamedTuple):
    """A file of dates and values, and what these are."""

    file: str
    times: Callable[[list[str]], np.ndarray]
    unit: str
    target: str
    columns: tuple[int, int] = (0, 1)


_SERIES = {
    "co2": _Source("co2-ppm/co2-mm-mlo.csv", months_to_years, "year", "CO2, Mauna Loa, monthly mean (ppm)", (0, 2)),
    "co2-weekly": _Source("statsmodels/co2.csv", days_to_years, "year", "CO2, Mauna Loa, weekly (ppm)"),
    "airline": _Source("jbrownlee/airline-passengers.csv", months_to_years, "year", "passengers a month (1000)"),
    "sunspots": _Source("statsmodels/sunspots.csv", _years, "year", "sunspot number, yearly"),
    "sunspots-monthly": _Source("jbrownlee/monthly-sunspots.csv", months_to_years, "year", "sunspot number, monthly"),
    "min-temperatures": _Source(
        "jbrownlee/daily-min-temperatures.csv", days_to_years, "year", "daily minimum, Melbourne (degrees C)"
    ),
    "max-temperatures": _Source(
        "jbrownlee/daily-max-temperatures.csv", days_to_years, "year", "daily maximum, Melbourne (degrees C)"
    ),
    "elnino": _Source("statsmodels/elnino.csv", months_to_years, "year", "sea surface, monthly (degrees C)"),
    "electrical-equipment": _Source(
        "statsmodels/elec_equip.csv", _named_months_to_years, "year", "turnover, euro area, monthly (index)"
    ),
    "nile": _Source("statsmodels/nile.csv", _years, "year", "yearly flow at Aswan (1e8 cubic metres)"),
    "electricity-victoria": _Source(
        "neuralprophet/elecdemand_dataset.csv", seconds_to_days, "day", "demand, half-hourly, 2014 (GW)"
    ),
    "electricity-france": _Source("neuralprophet/load_rte.csv", seconds_to_days, "day", "load, hourly, 2017-2018 (MW)"),
    "yosemite": _Source("neuralprophet/yosemite_temps.csv", seconds_to_days, "day", "temperature, 5-minute, 2017"),
}

#: Names of the series.
SERIES = tuple(_SERIES)


def series(name: str) -> Data:
    """Return a series of times and values, in the order of time; times without a value are left out.

    Parameters
    ----------
    name : str
        One of `SERIES`: co2, co2-weekly, airline, sunspots, sunspots-monthly, min-temperatures, max-temperatures,
        elnino, electrical-equipment, nile, electricity-victoria, electricity-france, yosemite.

    Returns
    -------
    Data
        X float64 [n, 1], the time in the unit that `columns` names: "year" (1949.0417 is the middle of January 1949)
        or "day" since the first midnight; y float64 [n], which `target` explains.

    Notes
    -----
    co2 is NOAA's (public domain). co2-weekly, sunspots, elnino, electrical-equipment and nile are from statsmodels
    (public domain, as it states). airline, sunspots-monthly and the Melbourne temperatures are copies of the Time
    Series Data Library (no licence stated). The last three are from neuralprophet-data (MIT). In the Melbourne
    temperatures the last day of 1984 and of 1988 is absent, and two or three minima near 0 have lost their minus sign.
    """
    if name not in _SERIES:
        raise ValueError(f"series: expected one of {list(SERIES)}; got {name!r}.")
    source = _SERIES[name]
    path = f"timeseries/{source.file}"
    with fetch(path).open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file) if row][1:]
    dates, values = _from_years_of_months(rows) if name == "elnino" else _from_rows(rows, source.columns)
    return Data(
        source.times(dates)[:, None],
        np.array(values, float),
        licence=licence(path),
        homepage=registered(path).homepage,
        columns=(source.unit,),
        target=source.target,
    )


def _from_rows(rows: list[list[str]], columns: tuple[int, int]) -> tuple[list[str], list[str]]:
    time, value = columns
    kept = [row for row in rows if row[value].strip()]
    return [row[time] for row in kept], [row[value] for row in kept]


def _from_years_of_months(rows: list[list[str]]) -> tuple[list[str], list[str]]:
    """Return the dates and values of a table with one row per year and one column per month."""
    dates = [f"{row[0]}-{month:02d}" for row in rows for month in range(1, 13)]
    return dates, [value for row in rows for value in row[1:]]
