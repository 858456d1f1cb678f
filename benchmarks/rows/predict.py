"""Mean and standard deviation at 100,000 rows: the default model against scikit-learn's GP, both fitted on 1,000."""

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from benchmarks.measure import Row, alternating, matmul_rate, peak_memory
from benchmarks.tables import friedman
from metaprior import MetaGPRegressor

NUM_ROWS, NUM_NEW, NUM_COLUMNS = 1000, 100_000, 8


def measure() -> Row:
    """Return (time of our `predict`) / (time of scikit-learn's)."""
    x, y = friedman(NUM_ROWS, 0)
    new = friedman(NUM_NEW, 1)[0]
    ours = MetaGPRegressor(random_state=0).fit(x, y)
    plain = MetaGPRegressor(input_kernel=None, random_state=0).fit(x, y)
    peer = GaussianProcessRegressor(RBF(np.ones(NUM_COLUMNS)) + WhiteKernel(0.1), optimizer=None, normalize_y=True)
    peer.fit(x, y)
    programs = {
        "ours": lambda: ours.predict(new, return_std=True),
        "ours, no input kernel": lambda: plain.predict(new, return_std=True),
        "scikit-learn": lambda: peer.predict(new, return_std=True),
    }
    times = alternating(programs, repeats=5)
    draws, units = int(plain.n_predict_draws) // 8, plain.hidden_layer_sizes[0] + 1
    # no input kernel, for every row and draw: the hidden layer, the mean, a product with a root of the covariance
    operations = 2.0 * NUM_NEW * draws * ((NUM_COLUMNS + 1) * (units - 1) + units + units**2)
    return Row(
        "mean and std of 100,000 rows x 8, fitted on 1,000 rows, default: ours / scikit-learn's GP",
        times["ours"] / times["scikit-learn"],
        "<= 0.3",
        {
            "seconds": times,
            "operations in products of matrices, no input kernel": operations,
            "share of the rate of products in float32, no input kernel": operations
            / times["ours, no input kernel"]
            / 1e9
            / matmul_rate(),
            "rows per second": NUM_NEW / times["ours"],
            "peak memory (MiB)": peak_memory(),
        },
    )
