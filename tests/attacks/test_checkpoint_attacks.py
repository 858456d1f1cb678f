"""Checkpoints that were damaged are never used: the one before serves, or the fit is refused with a clear error."""

import os
import random
import shutil
import struct
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from safetensors.numpy import save

from metaprior.baselines import MAPRegressor
from metaprior.inference import Identity, Snapshot
from metaprior.io import checkpoints
from metaprior.io.checkpoints import FILES, Checkpoint, CheckpointConfig

X = np.random.default_rng(0).uniform(-1, 1, (20, 1))
Y = np.sin(3 * X[:, 0])
#: The numbers of damages that every run of the tests tries.
FLIPS, CUTS = 1000, 250


def fitted(folder: Path | None) -> bytes:
    """Return the bits of a fit of three blocks of steps."""
    model = MAPRegressor((2,), max_iter=300, random_state=0).fit(X, Y, checkpoint=folder, every=100)
    return model.elbo_history_.tobytes() + np.asarray(model.predict(X, return_std=True)).tobytes()


class Killed(Exception):
    """The end of a fit that is to be resumed."""


class Run(NamedTuple):
    """A fit that was killed after two checkpoints, what they hold, and the result of a fit that was not killed."""

    folder: Path
    identity: Identity
    snapshots: list[Snapshot]
    result: bytes

    @property
    def newest(self) -> Path:
        return self.folder / FILES[1]


@pytest.fixture(scope="module")
def killed(tmp_path_factory) -> Run:
    folder, saved, save_one = tmp_path_factory.mktemp("killed") / "run", [], Checkpoint.save

    def save_two(self: Checkpoint, run: Identity, snapshot: Snapshot) -> None:
        save_one(self, run, snapshot)
        saved.append((run, snapshot))
        if len(saved) == 2:
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "save", save_two)
        with pytest.raises(Killed):
            fitted(folder)
    return Run(folder, saved[0][0], [snapshot for _, snapshot in saved], fitted(None))


@pytest.fixture
def run(killed, tmp_path) -> Run:
    """The same, in a folder of its own."""
    shutil.copytree(killed.folder, tmp_path / "run")
    return killed._replace(folder=tmp_path / "run")


def loaded(run: Run) -> int | None:
    """Return which of the two checkpoints is read, None where both are refused; nothing else may come of it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = Checkpoint(CheckpointConfig(run.folder, 100)).load(run.identity)
    except ValueError as error:
        message = str(error)
    else:
        message = ""
    if message:
        assert message.startswith("checkpoint: ")
        assert "delete the files" in message
        return None
    assert found is not None
    same = [_is_same(found, snapshot) for snapshot in run.snapshots]
    assert any(same), "a checkpoint that no run has written"
    return same.index(True)


def _is_same(one: Snapshot, other: Snapshot) -> bool:
    if one.numbers != other.numbers or one.arrays.keys() != other.arrays.keys():
        return False
    pairs = [(one.arrays[name], other.arrays[name]) for name in one.arrays]
    return all(a.tobytes() == b.tobytes() and a.dtype == b.dtype and a.shape == b.shape for a, b in pairs)


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def damages(content: bytes) -> list[bytes]:
    """Return copies with a bit flipped, and copies cut off."""
    rng, size = random.Random(0), len(content)
    header = 8 + struct.unpack("<Q", content[:8])[0]
    bits = rng.sample(range(8 * header), FLIPS // 2) + rng.sample(range(8 * header, 8 * size), FLIPS // 2)
    cuts = [*range(10), header - 1, header, header + 1, *rng.sample(range(10, size), CUTS - 13)]
    return [flipped(content, bit) for bit in bits] + [content[:cut] for cut in cuts]


def test_both_checkpoints_of_a_killed_run_are_there(run):
    assert sorted(path.name for path in run.folder.iterdir()) == sorted(FILES)
    assert loaded(run) == 1


def test_a_damaged_checkpoint_is_never_used(run):
    """1,250 damages of the newer one: the older is read, but where a bit of no meaning was flipped."""
    whole = run.newest.read_bytes()
    found = []
    for content in damages(whole):
        run.newest.write_bytes(content)
        found.append(loaded(run))
    assert len(found) == FLIPS + CUTS
    assert set(found) <= {0, 1}
    assert found[FLIPS:] == [0] * CUTS
    assert found[FLIPS // 2 : FLIPS] == [0] * (FLIPS // 2)  # every bit of an array has a meaning
    assert found.count(1) < FLIPS // 20  # spaces of the header have none


def test_without_another_checkpoint_a_damaged_one_is_refused(run):
    """The same 1,250 damages."""
    (run.folder / FILES[0]).unlink()
    whole = run.newest.read_bytes()
    for content in damages(whole):
        run.newest.write_bytes(content)
        assert loaded(run) in (1, None)


@pytest.mark.slow
def test_a_flipped_bit_in_any_byte_is_never_used(run):
    whole, rng, found = run.newest.read_bytes(), random.Random(1), set()
    for byte in range(len(whole)):
        run.newest.write_bytes(flipped(whole, 8 * byte + rng.randrange(8)))
        found.add(loaded(run))
    assert found <= {0, 1}


@pytest.mark.parametrize("seed", range(6))
def test_a_fit_goes_on_from_the_checkpoint_before_and_ends_with_the_same_bits(run, seed):
    content = run.newest.read_bytes()
    bit = random.Random(seed).randrange(8 * (len(content) // 2), 8 * len(content))
    run.newest.write_bytes(flipped(content, bit))
    with pytest.warns(UserWarning, match=r"run-2\.checkpoint .*is damaged.*; resuming from .*run\.checkpoint"):
        assert fitted(run.folder) == run.result
    assert fitted(run.folder) == run.result  # and the damaged file has been replaced: no warning is an error here


@pytest.mark.parametrize("seed", range(24))
def test_a_fit_is_refused_where_no_checkpoint_is_whole(run, seed):
    for path in (run.folder / name for name in FILES):
        content = path.read_bytes()
        path.write_bytes(flipped(content, random.Random(seed).randrange(8 * (len(content) // 2), 8 * len(content))))
    with pytest.raises(ValueError, match="is damaged.*no other is whole: delete the files"):
        fitted(run.folder)


def test_a_run_keeps_two_files(run):
    assert fitted(run.folder) == run.result
    assert sorted(path.name for path in run.folder.iterdir()) == sorted(FILES)


# --- files that no fit has written ------------------------------------------------------------


def with_header(header: bytes) -> bytes:
    return struct.pack("<Q", len(header)) + header


def forged(change: Any) -> bytes:
    """Return a file of the right form and digest, with other content."""
    text, arrays = change
    return save(arrays, {"format": checkpoints.FORMAT, "content": text, "digest": checkpoints._digest(text, arrays)})


NUMBER = {"a": np.zeros(2, np.float32)}
HOSTILE = {
    "nothing": b"",
    "no header": b"\0" * 8,
    "a header that is too long": struct.pack("<Q", 2**63) + b"{}",
    "a header of lists in lists": with_header(b"[" * 200_000),
    "a header that is a list": with_header(b"[1]"),
    "a header without a format": with_header(b'{"__metadata__": {}}'),
    "a format that is a list": with_header(b'{"__metadata__": {"format": []}}'),
    "metadata that are text": with_header(b'{"__metadata__": "format"}'),
    "text that is none": with_header(b'{"\xff": 1}'),
    "no digest": save(NUMBER, {"format": checkpoints.FORMAT, "content": "{}"}),
    "content that is no text": with_header(b'{"__metadata__": {"format": "metaprior checkpoint 3", "content": 7}}'),
    "an unknown type": with_header(
        b'{"__metadata__": {"format": "metaprior checkpoint 3"}, "a": {"dtype": "Q7", "shape": [], '
        b'"data_offsets": [0, 0]}}'
    ),
    "a type that NumPy has not": with_header(
        b'{"__metadata__": {"format": "metaprior checkpoint 3"}, "a": {"dtype": "BF16", "shape": [1], '
        b'"data_offsets": [0, 2]}}'
    )
    + b"\0\0",
    "an array beyond the end": with_header(
        b'{"__metadata__": {"format": "metaprior checkpoint 3"}, "a": {"dtype": "F32", "shape": [999999999], '
        b'"data_offsets": [0, 3999999996]}}'
    ),
    "forged content that is a list": forged(("[]", NUMBER)),
    "forged content without parts": forged(("{}", NUMBER)),
    "a forged number that is text": forged(('{"number": "x", "run": {}, "made_by": "", "numbers": {}}', NUMBER)),
    "a forged number without end": forged(('{"number": Infinity, "run": {}, "made_by": "", "numbers": {}}', NUMBER)),
    "a forged run that is a number": forged(('{"number": 9, "run": 1, "made_by": "", "numbers": {}}', NUMBER)),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_files_that_no_fit_has_written_are_refused(run, kind):
    """Beside a good one they are passed over; alone they are an error."""
    run.newest.write_bytes(HOSTILE[kind])
    assert loaded(run) == 0
    (run.folder / FILES[0]).unlink()
    assert loaded(run) is None


@pytest.mark.parametrize("name", ["state 0", "key", "term jitter"])
@pytest.mark.parametrize("change", [lambda a: None, lambda a: a[..., None]], ids=["missing", "another shape"])
def test_forged_arrays_that_do_not_fit_the_run_are_refused(run, monkeypatch, name, change):
    load = Checkpoint.load

    def changed(self: Checkpoint, identity: Identity) -> Snapshot | None:
        found = load(self, identity)
        assert found is not None
        other = change(found.arrays[name])
        rest = {key: value for key, value in found.arrays.items() if key != name}
        return Snapshot(rest if other is None else {**rest, name: other}, found.numbers)

    monkeypatch.setattr(Checkpoint, "load", changed)
    with pytest.raises(ValueError, match=r"checkpoint|dimension|shape"):
        fitted(run.folder)


@pytest.mark.parametrize("name", ["backoff", "roll_backs", "converged", "terms"])
def test_forged_numbers_that_do_not_fit_the_run_are_refused(run, monkeypatch, name):
    load = Checkpoint.load

    def changed(self: Checkpoint, identity: Identity) -> Snapshot | None:
        found = load(self, identity)
        assert found is not None
        return found._replace(numbers={key: value for key, value in found.numbers.items() if key != name})

    monkeypatch.setattr(Checkpoint, "load", changed)
    with pytest.raises(ValueError, match="checkpoint: its content does not fit this run"):
        fitted(run.folder)


@pytest.mark.parametrize("format_", ["metaprior checkpoint 2", "metaprior checkpoint 4"])
def test_checkpoints_of_other_versions_are_refused_with_what_to_do(run, format_):
    run.newest.unlink()
    header = {"format": format_, "run": "0" * 64, "numbers": "{}"}
    (run.folder / FILES[0]).write_bytes(save(run.snapshots[0].arrays, header))
    with pytest.raises(ValueError, match="another version of metaprior wrote it.*Let that version end the run"):
        fitted(run.folder)


@pytest.mark.parametrize("part", ["metaprior 0.0.1", "jax 0.1", "tpu"])
def test_a_checkpoint_of_other_versions_of_what_computes_is_refused(run, monkeypatch, part):
    monkeypatch.setattr(checkpoints, "_versions", lambda: part)
    with pytest.raises(ValueError, match=f"was written by metaprior .* and this is {part}, which may compute"):
        fitted(run.folder)


def test_what_is_no_file_is_not_read(run):
    run.newest.unlink()
    os.mkfifo(run.newest)  # reading one would wait for a writer
    assert loaded(run) == 0
    run.newest.unlink()
    run.newest.mkdir()
    assert loaded(run) == 0
    run.newest.rmdir()
    run.newest.symlink_to(run.newest.name)
    assert loaded(run) == 0
