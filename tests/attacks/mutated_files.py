"""Hostile twins of saved files, and a process that loads them: FOLDER FIRST COUNT SOURCES...

A mutation changes one thing of a real file: its bytes, its description in JSON, or its arrays. The last two get a right
checksum, so that nothing but the checks of the content can tell. The process loads COUNT mutations of every source,
from the one with the number FIRST on, lets each model that loads predict, and prints one line of JSON: how many files
were refused, how many predicted (or, for the files of loops, loaded), how many said that their prediction would not be
finite, and what else happened.
"""

import copy
import json
import re
import resource
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from edited_files import Arrays, put_together, taken_apart

#: Seconds after which a load or a prediction counts as hanging, and the address space that the process may take.
MOST_SECONDS, MOST_MEMORY = 60, 8 * 2**30

#: Values that replace any part of a description.
VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    7,
    10**9,
    10**30,
    "",
    "x",
    "metaprior.model:Model",
    [],
    {},
    1.5,
    {"list": []},
    {"tuple": []},
    {"tuple": [{"tuple": [1, 2]}]},
    {"dict": {"a": 1}},
    {"float": "nan"},
    {"float": "-inf"},
    {"float": "0x1p+1000"},
    {"float": "-0x1p-3"},
    {"float": "hello"},
    {"array": "a0"},
    {"array": "nothing"},
    {"array": ["a0"]},
    {"scalar": {"array": "a0"}},
    {"range": [0, 10**15, 1]},
    {"range": [0, 3]},
    {"range": ["a"]},
    {"texts": ["a", "b"], "dtype": "<U200000000"},
    {"texts": ["a", "b"], "dtype": "(2,)f8,O"},
    {"texts": ["a", ["b"]], "dtype": "object"},
    {"texts": [1, 2], "dtype": "<U3"},
    {"activation": "relu"},
    {"activation": "system"},
    {"class": "os:system", "fields": {"command": "true"}},
    {"class": "metaprior.kernels.rbf:RBF", "fields": {}},
    {"class": "metaprior.types:Fixed", "fields": {"value": 1}},
    {"class": "metaprior.networks.base:WeightLayer", "fields": {"inputs": {"range": [0, 2, 1]}, "outputs": 3}},
    {"estimator": {"class": "metaprior.baselines.map:MAPRegressor", "params": {}, "state": {}}},
    {"random_state": {"list": ["MT19937", {"array": "a0"}, 200_000_000, 0, {"float": "0x0p+0"}]}},
]

# --- bytes ----------------------------------------------------------------------------


def flip_bit(content: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(content)
    changed[rng.integers(len(content))] ^= 1 << rng.integers(8)
    return bytes(changed)


def cut_off(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: rng.integers(len(content))]


def lengthen(content: bytes, rng: np.random.Generator) -> bytes:
    return content + rng.bytes(int(rng.integers(1, 100)))


def other_header_length(content: bytes, rng: np.random.Generator) -> bytes:
    length = int(rng.choice([0, 1, 7, len(content), 2**31, 2**63]))
    return length.to_bytes(8, "little") + content[8:]


def overwrite_block(content: bytes, rng: np.random.Generator) -> bytes:
    start, size = int(rng.integers(len(content))), int(rng.integers(1, 64))
    return content[:start] + rng.bytes(size) + content[start + size :]


def swap_halves(content: bytes, rng: np.random.Generator) -> bytes:
    place = int(rng.integers(8, len(content)))
    return content[:8] + content[place:] + content[8:place]


BYTES = [flip_bit, cut_off, lengthen, other_header_length, overwrite_block, swap_halves]

# --- the description ------------------------------------------------------------------


def places(tree: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, Any]]:
    """Yield every container of a tree with each of its keys."""
    if isinstance(tree, dict | list):
        for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
            yield tree, key
            yield from places(tree[key])


def any_place(tree: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    found = list(places(tree))
    return found[rng.integers(len(found))]


def other_value(tree: Any, rng: np.random.Generator) -> None:
    inside, key = any_place(tree, rng)
    inside[key] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])


def missing_part(tree: Any, rng: np.random.Generator) -> None:
    inside, key = any_place(tree, rng)
    del inside[key]


def renamed_part(tree: Any, rng: np.random.Generator) -> None:
    inside, key = any_place(tree, rng)
    if isinstance(inside, dict):
        inside[str(rng.choice(["predict", "__class__", "fit", "x", f"{key}_", "kind", "state"]))] = inside.pop(key)
    else:
        inside.insert(key, inside[key])


def swapped_parts(tree: Any, rng: np.random.Generator) -> None:
    (first, a), (second, b) = any_place(tree, rng), any_place(tree, rng)
    first[a], second[b] = copy.deepcopy(second[b]), copy.deepcopy(first[a])


def other_number(tree: Any, rng: np.random.Generator) -> None:
    """Change a whole number or a float to another one."""
    numbers = [(c, k) for c, k in places(tree) if isinstance(c[k], int) or (isinstance(c, dict) and k == "float")]
    inside, key = numbers[rng.integers(len(numbers))]
    if key == "float":
        inside[key] = float(rng.choice([-1.0, 0.0, 1e-300, 1e300, 1e20, np.nan, np.inf, 3.7])).hex()
    else:
        inside[key] = int(rng.choice([-1, 0, 1, 2, 3, 5, 1000, 2**31, 2**62]))


def deeper(tree: Any, rng: np.random.Generator) -> None:
    inside, key = any_place(tree, rng)
    for _ in range(int(rng.choice([1, 50, 400]))):
        inside[key] = {"list": [inside[key]]}


def other_class(tree: Any, rng: np.random.Generator) -> None:
    """Give one part the class of another."""
    named = [(c, k) for c, k in places(tree) if k == "class"]
    (first, a), (second, b) = (named[rng.integers(len(named))] for _ in range(2))
    first[a] = second[b]


DESCRIPTIONS = [other_value, missing_part, renamed_part, swapped_parts, other_number, deeper, other_class]

# --- arrays ---------------------------------------------------------------------------


def other_numbers(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Change one number, to one that is not finite, too large, of the other sign, or small."""
    changed = array.copy().reshape(-1)
    place = rng.integers(len(changed))
    if array.dtype.kind == "f":
        changed[place] = rng.choice([np.nan, np.inf, -np.inf, 1e300, -1e300, 1e30, -50.0, -changed[place], 0.0, 1e-300])
    else:
        changed[place] = rng.choice([0, 1, 2**31])
    return changed.reshape(array.shape)


def flipped_number(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.frombuffer(flip_bit(array.tobytes(), rng), array.dtype).reshape(array.shape)


def one_number_throughout(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if array.dtype.kind != "f":
        return np.zeros_like(array)
    return np.full_like(array, rng.choice([0.0, 1e-300, 1e80, -1e80, 250.0, -250.0, 30.0, -30.0, 1e5]))


def other_shape(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    shapes = [array.T, array.ravel(), array[None], array[..., None], array.ravel()[:-1], array.ravel()[:0]]
    shapes += [np.concatenate([array, array])] if array.ndim else [np.stack([array, array])]
    return shapes[rng.integers(len(shapes))]


def other_dtype(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    with np.errstate(all="ignore"):
        return array.astype(rng.choice(["f2", "f4", "f8", "i8", "u1", "?"]))


ARRAYS = [other_numbers, flipped_number, one_number_throughout, other_shape, other_dtype]


def swapped_arrays(arrays: Arrays, rng: np.random.Generator) -> Arrays:
    a, b = rng.choice(sorted(arrays), 2)
    return {**arrays, a: arrays[b], b: arrays[a]}


# --- all of them ----------------------------------------------------------------------


def mutate(source: Path, target: Path, number: int) -> str:
    """Write the mutation with this number, and return its name."""
    rng = np.random.default_rng(number)
    change: Callable[..., Any]
    if number % 6 == 0:
        change = BYTES[rng.integers(len(BYTES))]
        target.write_bytes(change(source.read_bytes(), rng))
        return change.__name__
    texts, arrays = taken_apart(source)
    content = json.loads(texts["content"])
    if number % 2:
        change = DESCRIPTIONS[rng.integers(len(DESCRIPTIONS))]
        change(content, rng)
    elif rng.uniform() < 0.1:
        change, arrays = swapped_arrays, swapped_arrays(arrays, rng)
    else:
        change, name = ARRAYS[rng.integers(len(ARRAYS))], str(rng.choice(sorted(arrays)))
        if arrays[name].size:
            arrays[name] = change(arrays[name], rng)
    put_together(target, texts, content, arrays)
    return change.__name__


def own_rows(model: Any) -> np.ndarray:
    """Return three rows among those that a model says it was fitted to; far from them it may refuse to predict."""
    first = next(iter(model.estimators_.values())) if hasattr(model, "estimators_") else model
    return first.x_offset_ + np.linspace(-1.5, 1.5, 3)[:, None] * first.x_scale_


def predicts(model: Any) -> None:
    """Raise an AssertionError unless a model predicts finite numbers of the right shape at a few rows."""
    if hasattr(model, "schema"):
        predicts_table(model)
        return
    tasks = [{"task": name} for name in getattr(model, "estimators_", {})] or [{}]
    rows = own_rows(model)
    for task in tasks:
        one = model.estimator(task["task"]) if task else model
        if hasattr(one, "classes_"):
            found = [model.predict_proba(rows, **task)]
            assert found[0].shape == (3, len(one.classes_)), found[0].shape
            assert model.predict(rows, **task).shape == (3,)
        else:
            found = list(model.predict(rows, return_std=True, **task))
            columns = () if one._flat else (len(one.y_scale_),)
            assert all(part.shape == (3, *columns) for part in found), [part.shape for part in found]
            assert np.all(found[1] >= 0), "a negative standard deviation"
        assert all(np.all(np.isfinite(part)) for part in found), "numbers that are not finite"


def predicts_table(model: Any) -> None:
    """Raise an AssertionError unless a model of a table of numbers predicts a table of finite numbers."""
    import pandas as pd

    rows = own_rows(model.estimator).T
    found = model.predict(
        pd.DataFrame({column.name: row for column, row in zip(model.schema.columns, rows, strict=True)})
    )
    assert found.shape[0] == 3
    assert np.all(np.isfinite(found.to_numpy(np.float64))), "numbers that are not finite"


def outcome(path: Path, kind: str | None) -> str:
    """Load a file and predict: say "refused", "predicted", "not finite", or what happened instead.

    Numbers may be possible one by one and absurd together, which only the prediction can tell: it raises an error.
    """
    import metaprior
    from metaprior.io.saving import load_state

    try:
        model = metaprior.load(path) if kind is None else load_state(path, kind)
    except (ValueError, OSError):
        return "refused"
    except BaseException as error:
        return f"load raised {type(error).__name__}: {error}"
    try:
        if kind is None:
            predicts(model)
    except BaseException as error:
        if str(error).startswith("predict: the numbers at"):
            return "not finite"
        return f"predict raised {type(error).__name__}: {str(error)[:300]}"
    return "predicted"


def main(folder: str, first: str, count: str, *sources: str) -> None:
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    target = Path(folder) / "mutated"
    counts, others = {"refused": 0, "predicted": 0, "not finite": 0}, []

    def hang(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, hang)
    for source in map(Path, sources):
        loop = re.fullmatch("loop-(.*)", source.stem)
        for number in range(int(first), int(first) + int(count)):
            name = mutate(source, target, number)
            signal.alarm(MOST_SECONDS)
            found = outcome(target, loop and loop.group(1))
            signal.alarm(0)
            if found in counts:
                counts[found] += 1
            else:
                others.append(f"{source.stem} {number} {name}: {found}")
    print(json.dumps({**counts, "others": others}))


if __name__ == "__main__":
    main(*sys.argv[1:])
