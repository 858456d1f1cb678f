"""One small estimator of every kind, quick to fit: what the tests of odd and of hostile data go through."""

from metaprior import MetaGPClassifier, MetaGPRegressor, baselines, kernels

TRAINED = {"hidden_layer_sizes": (3,), "max_iter": 60, "random_state": 0}
DRAWN = {**TRAINED, "n_predict_draws": 8}
SAMPLED = {"hidden_layer_sizes": (2,), "n_warmup": 10, "n_samples": 10, "n_chains": 1, "max_tree_depth": 3}
SAMPLED |= {"n_predict_draws": 10, "random_state": 0}
METAGP = {**DRAWN, "n_inducing": 4}
REGRESSORS = {
    "global": lambda: MetaGPRegressor(**METAGP, input_kernel=None),
    "local": lambda: MetaGPRegressor(**METAGP, input_kernel="rbf"),
    "periodic": lambda: MetaGPRegressor(**METAGP, input_kernel="periodic"),
    "linear": lambda: MetaGPRegressor(**METAGP, input_kernel=kernels.Linear() + kernels.Matern12()),
    "full": lambda: MetaGPRegressor(**METAGP, input_kernel="matern32", conditional="full", dtype="float64"),
    "fitc": lambda: MetaGPRegressor(**METAGP, conditional="fitc", input_kernel=None),
    "projected": lambda: MetaGPRegressor(**METAGP, input_kernel="rbf", input_projection=2),
    "student_t": lambda: MetaGPRegressor(**METAGP, likelihood="student_t", input_kernel=None),
    "map": lambda: baselines.MAPRegressor(**TRAINED),
    "mfvi": lambda: baselines.MFVIRegressor(**DRAWN),
    "metann": lambda: baselines.MetaNNRegressor(**DRAWN),
    "dkl": lambda: baselines.DKLRegressor(**DRAWN, n_inducing=5),
    "ensemble": lambda: baselines.EnsembleRegressor(**TRAINED, n_members=2),
    "laplace": lambda: baselines.LaplaceRegressor(**DRAWN),
    "laplace kronecker": lambda: baselines.LaplaceRegressor(**DRAWN, structure="kronecker"),
    "hmc": lambda: baselines.HMCRegressor(**SAMPLED),
    "hmc metagp": lambda: baselines.HMCRegressor(**SAMPLED, prior="metagp", input_kernel="linear"),
    "exact gp": lambda: baselines.ExactGPRegressor(n_restarts=1, random_state=0),
    "exact gp periodic": lambda: baselines.ExactGPRegressor("periodic", n_restarts=1, random_state=0),
}
CLASSIFIERS = {
    "global": lambda: MetaGPClassifier(**METAGP, input_kernel=None),
    "local": lambda: MetaGPClassifier(**METAGP, input_kernel="rbf"),
    "map": lambda: baselines.MAPClassifier(**TRAINED),
    "mfvi": lambda: baselines.MFVIClassifier(**DRAWN),
    "metann": lambda: baselines.MetaNNClassifier(**DRAWN),
    "dkl": lambda: baselines.DKLClassifier(**DRAWN, n_inducing=5),
    "ensemble": lambda: baselines.EnsembleClassifier(**TRAINED, n_members=2),
    "laplace": lambda: baselines.LaplaceClassifier(**DRAWN),
    "hmc": lambda: baselines.HMCClassifier(**SAMPLED),
}
