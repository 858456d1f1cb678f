"""The options of `metaprior fit` that become parameters of an estimator."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from metaprior.cli.kernel_text import FORM, kernel_in_words
from metaprior.cli.options import seed_of
from metaprior.cli.result import UsageError

if TYPE_CHECKING:
    from metaprior.tables import Schema

#: The default input kernel: the bound chooses among some.
USUAL_KERNEL = "auto"
ACTIVATIONS = ("tanh", "relu", "logistic", "gelu", "silu", "elu", "softplus", "identity")
LIKELIHOODS = ("gaussian", "heteroscedastic", "student_t", "poisson")
#: The longest value of --set, in characters: enough for any parameter, and too little to be nested too deeply.
LONGEST_VALUE = 500
#: Options that are passed on unchanged as parameters.
PARAMETERS = (
    "activation",
    "likelihood",
    "max_iter",
    "batch_size",
    "learning_rate_init",
    "n_inducing",
    "random_state",
)


def add_estimator(parser: argparse.ArgumentParser) -> None:
    """Add the options of the model and its training."""
    group = parser.add_argument_group("the model")
    group.add_argument(
        "--input-kernel",
        default=USUAL_KERNEL,
        metavar="KERNEL",
        help="how the weights vary with the input: auto (default: the bound chooses among some), rbf, periodic, "
        f"matern12, matern32, matern52, rational_quadratic, linear, constant, or none for the same weights everywhere; "
        f"{FORM}",
    )
    group.add_argument("--hidden", type=_sizes, metavar="N,N", help="units of the hidden layers; default: 50")
    group.add_argument("--activation", choices=ACTIVATIONS, help="default: tanh")
    group.add_argument("--likelihood", choices=LIKELIHOODS, help="noise model for regression; default: gaussian")
    group.add_argument("--n-inducing", "--num-inducing", type=int, metavar="N", help="inducing codes; default: 50")
    group = parser.add_argument_group("training")
    group.add_argument("--max-iter", type=int, metavar="N", help="number of steps; default: 3000")
    group.add_argument("--batch-size", type=int, metavar="N", help="rows per step; default: all up to 512, else 256")
    group.add_argument(
        "--learning-rate", type=float, dest="learning_rate_init", metavar="X", help="default: chosen by the fit"
    )
    group.add_argument("--seed", type=seed_of, default=0, dest="random_state", metavar="N", help="default: 0")
    group.add_argument(
        "--set",
        action="append",
        type=_setting,
        default=[],
        metavar="NAME=VALUE",
        help="any other parameter of MetaGPRegressor or MetaGPClassifier, for instance conditional=full (repeatable)",
    )


def estimator_of(args: argparse.Namespace, schema: "Schema") -> Any:
    """Return the estimator that the options describe, for the task of a table."""
    from metaprior.estimators import MetaGPClassifier, MetaGPRegressor
    from metaprior.estimators.fit import method_of
    from metaprior.io.renamed import present_parameters

    is_regression = schema.target.task == "regression"
    if args.likelihood is not None and not is_regression:
        raise UsageError("--likelihood: classification does not use it; leave it out, or give --task regression")
    params = {name: getattr(args, name) for name in PARAMETERS if getattr(args, name) is not None}
    params["input_kernel"] = kernel_in_words(args.input_kernel, schema)
    if args.hidden is not None:
        params["hidden_layer_sizes"] = args.hidden
    cls = MetaGPRegressor if is_regression else MetaGPClassifier
    others = present_parameters(dict(args.set))
    unknown = sorted(set(others) - set(cls().get_params()))
    if unknown:
        raise UsageError(f"--set: {cls.__name__} has no parameter {unknown[0]!r}; it has {sorted(cls().get_params())}")
    made = cls(**{**params, **others})
    try:
        method_of(made).check()
    except ValueError as error:
        raise UsageError(str(error)) from error
    return made


def _sizes(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(size) for size in text.split(",") if size.strip())
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"expected whole numbers and commas, such as 50,50; got {text!r}") from error


def _setting(text: str) -> tuple[str, Any]:
    """Return a name and a value, which is read as JSON (3, 0.5, true, null, [0, 1]) if it can be, else as text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE; got {text!r}")
    if len(value) > LONGEST_VALUE:
        raise argparse.ArgumentTypeError(
            f"{name.strip()}: expected a value of at most {LONGEST_VALUE} characters; got {len(value)}"
        )
    try:
        return name.strip(), json.loads(value, parse_int=_whole_number)
    except json.JSONDecodeError:
        return name.strip(), value.strip()


def _whole_number(text: str) -> int | float:
    """Return a whole number as it is, or as a float if it has more than 64 bits."""
    return int(text) if len(text) < 19 else float(text)
