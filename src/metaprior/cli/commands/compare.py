"""`metaprior compare`: a leaderboard of this library and other methods on a training table."""

import argparse
import time
from typing import TYPE_CHECKING, Any

from metaprior.cli.contenders import CONTENDERS, OWN, chosen_methods, made_contender
from metaprior.cli.estimator_options import add_estimator, estimator_of
from metaprior.cli.holdout import FORM, check_classes, holdout_of
from metaprior.cli.leaderboard import SHOWN, USUAL_ORDER, flat_table, leaderboard, sorted_table
from metaprior.cli.options import add_output, check_inputs, check_output
from metaprior.cli.result import Result, UsageError, counted
from metaprior.cli.training_table import add_training_table, training_table
from metaprior.user_warnings import warn_user

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from metaprior.tables import Schema

SUMMARY = "compare this library with other methods on a training table: a leaderboard"
EXAMPLES = """\
  metaprior compare train.csv --target price
  metaprior compare train.csv --target price --folds 10 --sort nll --out leaderboard.csv
  metaprior compare train.csv --target sold --methods metaprior,boosted-trees,linear --json
  metaprior compare sales.csv --target units --holdout last:0.2
"""
#: More rows than this are thinned, so that the usual comparison ends within minutes.
USUAL_ROWS = 2_000
#: What the standard error does not say.
CAVEAT = "standard errors are over the splits, which share training rows, so they are somewhat too small"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_training_table(parser)
    add_output(parser, "write all scores to this file, as Parquet for .parquet and .pq, else as CSV", required=False)
    group = parser.add_argument_group("the comparison")
    group.add_argument(
        "--methods",
        type=_names,
        metavar="NAME,NAME",
        help=f"what is compared; default: those marked + below. + {OWN}: the model of 'metaprior fit' with the same "
        f"options; {_listed()}. Networks have the hidden layers, activation and --max-iter of {OWN}",
    )
    group.add_argument("--folds", type=_count, metavar="N", help="folds of the cross-validation; default: 5")
    group.add_argument(
        "--holdout", type=holdout_of, metavar="PART", help=f"instead of folds, score on {FORM}, or last:0.2:COLUMN"
    )
    group.add_argument(
        "--repeats",
        type=_count,
        metavar="N",
        help="how often the folds, or the rows held out at random, are drawn anew; default: 1 for folds, 5 for rows",
    )
    group.add_argument(
        "--sort",
        choices=sorted({name for scores in SHOWN.values() for name in scores} - {"fit_seconds"}),
        help="the score by which methods are sorted; default: rmse for numbers, nll for classes",
    )
    group.add_argument(
        "--max-rows",
        type=_count,
        default=USUAL_ROWS,
        metavar="N",
        help=f"compare on so many rows, drawn at random, if the table has more; default: {USUAL_ROWS}",
    )
    add_estimator(parser)


def run(args: argparse.Namespace) -> Result:
    """Compare, and write the scores if that is asked for."""
    check_output(args)
    check_inputs(args)
    frame, schema = training_table(args)
    frame = _thinned(frame, args.max_rows, args.random_state)
    task = schema.target.task
    order = _order(args.sort, task)
    splits, how = _splits(args, frame, schema)
    names, notes = chosen_methods(args.methods, task, min(len(train) for train, _ in splits))
    for note in notes:
        warn_user(note)
    own = estimator_of(args, schema)
    estimators = {name: made_contender(name, task, own) for name in names}
    started = time.perf_counter()
    x, y = schema.encoded(frame), _encoded_target(frame, schema)
    table = _compared(estimators, x, y, splits, verbose=not args.quiet)
    about = {
        "task": task,
        "target": args.target,
        "rows": len(frame),
        "scored_on": how,
        "sorted_by": order,
        "seconds": round(time.perf_counter() - started, 3),
    }
    return _result(args, sorted_table(table, task, order), about)


def _result(args: argparse.Namespace, table: "pd.DataFrame", about: dict[str, Any]) -> Result:
    """Return the leaderboard as values and as text; write it to a file if that is asked for."""
    from metaprior.tables import write_table

    task, how, flat = about["task"], about["scored_on"], flat_table(table)
    splits = [{"method": fold["estimator"], **fold} for fold in table.attrs["folds"]]
    data = {**about, "methods": flat.to_dict("records"), "splits": [_without(fold, "estimator") for fold in splits]}
    lines = [
        f"{task} of {args.target!r}, {about['rows']} rows, scored on {how}; {about['seconds']:.0f} s in all",
        leaderboard(table, task),
        f"sorted by {SHOWN[task][about['sorted_by']].head}; * best of its column"
        + (f"; {CAVEAT}" if len(splits) > len(flat) else ""),
    ]
    if args.out is not None:
        write_table(flat, args.out, overwrite=args.force)
        data["out"] = args.out
        lines.append(f"{args.out}: {counted(len(flat), 'row')} of {counted(len(flat.columns), 'column')}")
    return Result(data, "\n".join(lines))


def _without(values: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != name}


def _encoded_target(frame: "pd.DataFrame", schema: "Schema") -> "np.ndarray":
    """Return the target as numbers: those of the classes, because not every library takes texts."""
    import numpy as np

    y = schema.target.encoded(frame[schema.target.name])
    return y if schema.target.task == "regression" else np.unique(y, return_inverse=True)[1]


def _listed() -> str:
    return "; ".join(f"{'+ ' if method.usual else ''}{name}: {method.what}" for name, method in CONTENDERS.items())


def _order(asked: str | None, task: str) -> str:
    order = asked or USUAL_ORDER[task]
    if order not in SHOWN[task]:
        raise UsageError(f"--sort: expected one of {', '.join(SHOWN[task])} for {task}; got {order!r}")
    return order


def _thinned(frame: "pd.DataFrame", most: int, seed: int) -> "pd.DataFrame":
    """Return at most so many rows, in their order."""
    if len(frame) <= most:
        return frame
    import numpy as np

    warn_user(f"{most:,} of {len(frame):,} rows are compared, drawn at random; --max-rows {len(frame)} takes all.")
    kept = np.random.default_rng(seed).choice(len(frame), most, replace=False)
    return frame.iloc[np.sort(kept)].reset_index(drop=True)


def _splits(
    args: argparse.Namespace, frame: "pd.DataFrame", schema: "Schema"
) -> "tuple[list[tuple[np.ndarray, np.ndarray]], str]":
    """Return the rows to fit and to score of every split, and how they were chosen, in words."""
    holdout, labels = args.holdout, schema.target.encoded(frame[schema.target.name])
    if holdout is None:
        return _folds(args, labels, is_classified=schema.target.task == "classification")
    if args.folds is not None:
        raise UsageError("--folds and --holdout: expected one of them; got both")
    if holdout.last and args.repeats is not None:
        raise UsageError("--repeats: the last rows are always the same; leave it out")
    repeats = 1 if holdout.last else args.repeats or 5
    splits = [holdout.split(frame, schema, labels, args.random_state + number) for number in range(repeats)]
    return splits, f"{counted(len(splits[0][1]), 'row')}, {holdout.described(schema)}{_times(repeats)}"


def _folds(
    args: argparse.Namespace, labels: "np.ndarray", *, is_classified: bool
) -> "tuple[list[tuple[np.ndarray, np.ndarray]], str]":
    from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold

    folds, repeats = args.folds or 5, args.repeats or 1
    if not 2 <= folds <= len(labels):
        raise UsageError(f"--folds: expected a number from 2 to the number of rows, {len(labels)}; got {folds}")
    kind = RepeatedStratifiedKFold if is_classified else RepeatedKFold
    splitter = kind(n_splits=folds, n_repeats=repeats, random_state=args.random_state)
    splits = list(splitter.split(labels, labels))
    for split in splits if is_classified else []:
        check_classes(labels, split)
    return splits, f"{folds} folds{_times(repeats)}"


def _times(repeats: int) -> str:
    return f", {repeats} times" if repeats > 1 else ""


def _compared(
    estimators: dict[str, Any],
    x: "np.ndarray",
    y: "np.ndarray",
    splits: "list[tuple[np.ndarray, np.ndarray]]",
    *,
    verbose: bool,
) -> "pd.DataFrame":
    """Return the table of scores. A method that fails in a split has no scores, and a note says why."""
    from metaprior.comparison import compare

    try:
        return compare(estimators, x, y, cv=splits, error_score=float("nan"), verbose=verbose)
    except RuntimeError as error:
        raise ValueError(str(error)) from error


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError(f"expected names of methods with commas between them; got {text!r}")
    return names


def _count(text: str) -> int:
    if not (text.isdecimal() and len(text) <= 9 and int(text) >= 1):
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1; got {text!r}")
    return int(text)
