"""Names of earlier versions: of parameters, and of the modules, classes and fields that files contain."""

from typing import Any, NamedTuple


class Renamed(NamedTuple):
    """The new name of a parameter, and the new names of some of its values."""

    name: str
    values: dict[Any, Any] = {}


#: Modules and packages that have moved.
MODULES = {
    "metaprior.leaves": "metaprior.types",
    "metaprior.mapping": "metaprior.weight_gp",
    "metaprior.mapping.anchored": "metaprior.weight_gp.anchored",
    "metaprior.mapping.diag": "metaprior.weight_gp.diag",
    "metaprior.mapping.fitc": "metaprior.weight_gp.fitc",
    "metaprior.mapping.full": "metaprior.weight_gp.full",
    "metaprior.mapping.inducing": "metaprior.weight_gp.sparse_gp",
    "metaprior.mapping.pathwise": "metaprior.weight_gp.pathwise",
    "metaprior.mapping.weight_noise": "metaprior.weight_gp.weight_noise",
    "metaprior.units": "metaprior.latents",
}

#: Classes that have been renamed.
CLASSES = {"Mapping": "SparseGP", "Units": "UnitLatents", "Wire": "WeightLayer"}

#: Fields that have been renamed, by the present name of their class.
FIELDS = {
    "MetaGP": {"mappings": "sparse_gps", "units": "latents", "wires": "weight_layers"},
    "MetaNN": {"units": "latents", "wires": "weight_layers", "from_noise": "from_normals"},
    "HierarchicalMetaGP": {"wires": "weight_layers", "noise": "noise_normals"},
}

#: In files of earlier versions the state of a loop is an estimator of one of these classes.
STATE_RECORDS = ("metaprior.loops:LoopRecord", "metaprior.decisions.records:LoopRecord")

#: Renamed parameters, by their old name.
PARAMETERS = {
    "input_units": Renamed("input_scaling", {"columns": "per_column", "together": "joint"}),
    "mapping": Renamed("weight_gp", {"global": "shared", "layer": "per_layer"}),
    "num_chains": Renamed("n_chains"),
    "num_inducing": Renamed("n_inducing"),
    "num_inducing_rows": Renamed("n_inducing_rows"),
    "num_members": Renamed("n_members"),
    "num_predict_draws": Renamed("n_predict_draws"),
    "num_samples": Renamed("n_samples"),
    "num_train_draws": Renamed("n_train_draws"),
    "num_warmup": Renamed("n_warmup"),
    "num_weight_draws": Renamed("n_weight_draws"),
}

#: Renamed parameters of the loops and functions of `metaprior.decisions`, by their old name.
LOOP_PARAMETERS = {
    "batch": Renamed("n_queries"),
    "model": Renamed("estimator"),
    "num_answers": Renamed("n_observations"),
    "num_arms": Renamed("n_arms"),
    "num_configurations": Renamed("n_configurations"),
    "num_evaluations": Renamed("n_observations"),
    "num_initial": Renamed("n_initial"),
    "num_queries": Renamed("n_queries"),
    "num_start": Renamed("n_initial"),
    "surrogate": Renamed("estimator"),
}

#: Renamed attributes of fitted estimators, by their old name.
ATTRIBUTES = {"num_divergences_": "n_divergences_"}


#: Fields that files of earlier versions contain and that now follow from the class.
DROPPED = ("degrees",)


def present_parameters(parameters: dict[str, Any], table: dict[str, Renamed] = PARAMETERS) -> dict[str, Any]:
    """Return parameters under their present names, with the present names of their values."""
    found = {}
    for name, value in parameters.items():
        renamed = table.get(name, Renamed(name))
        is_word = isinstance(value, str)
        found[renamed.name] = renamed.values.get(value, value) if is_word else value
    return found


def present_name(name: str) -> str:
    """Return the present name of a class, as "module:Class"."""
    module, _, cls = name.partition(":")
    return f"{MODULES.get(module, module)}:{CLASSES.get(cls, cls)}"


def present_fields(cls: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a class under their present names."""
    renamed = FIELDS.get(cls, {})
    present = {renamed.get(name, name): value for name, value in fields.items() if name not in DROPPED}
    is_kernel = {"fixed", "bounds"} <= present.keys()
    return _present_kernel(present) if is_kernel and "unset" not in present else present


def _present_kernel(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a kernel of an earlier version, in which the flag `given` stood for today's `unset`."""
    name = "variance" if "log_variance" in fields else "lengthscale"
    others = {part: value for part, value in fields.items() if part != "given"}
    return {**others, "unset": () if fields.get("given", True) else (name,)}
