"""Beyond one device: the numbers of one, on a mesh of forced host devices and over two processes."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from metaprior import MetaGPRegressor
from metaprior.inference import row_mesh

SCRIPT = Path(__file__).parent / "spread_fit.py"


def run(*args: str, devices: int = 1) -> subprocess.Popen:
    # first: XLA reads no flag after one that it does not know
    flags = f"--xla_force_host_platform_device_count={devices} {os.environ.get('XLA_FLAGS', '')}"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    return subprocess.Popen([sys.executable, str(SCRIPT), *args], env=environment, stderr=subprocess.PIPE, text=True)


def finished(*processes: subprocess.Popen) -> None:
    for process in processes:
        _, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors[-3000:]


@pytest.fixture(scope="module")
def one_device(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("one") / "one.npz"
    finished(run(str(path), "none"))
    return path


def assert_same(path: Path, expected: Path) -> None:
    """The order of a sum over rows differs: float32 rounding, grown over 40 steps of Adam."""
    with np.load(path) as got, np.load(expected) as want:
        assert set(got) == set(want)
        for name in want:
            np.testing.assert_allclose(got[name], want[name], rtol=2e-3, atol=2e-3, err_msg=name)


@pytest.mark.slow
def test_four_devices_give_the_numbers_of_one(tmp_path, one_device):
    path = tmp_path / "four.npz"
    finished(run(str(path), "4", devices=4))
    assert_same(path, one_device)


@pytest.mark.slow
def test_two_processes_give_the_numbers_of_one(tmp_path, one_device):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    paths = [tmp_path / f"process{rank}.npz" for rank in range(2)]
    finished(*[run(str(path), "all", address, str(rank)) for rank, path in enumerate(paths)])
    for path in paths:
        assert_same(path, one_device)


def test_more_devices_than_there_are_is_an_error():
    with pytest.raises(ValueError, match=r"at most \d+ devices.*got 1000"):
        row_mesh(1000)


@pytest.mark.parametrize("devices", [0, "some", 1.5])
def test_devices_must_be_a_number_or_all(devices):
    with pytest.raises(ValueError, match="devices: expected None, a number of devices or 'all'"):
        MetaGPRegressor(devices=devices, input_kernel=None).fit([[0.0], [1.0]], [0.0, 1.0])
