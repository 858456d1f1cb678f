"""What every score means, in words."""

#: What every score means.
MEANINGS = {
    "r2": "share of the variance that the means explain; 1 is best",
    "rmse": "root mean squared error of the mean, in units of the target; smaller is better",
    "nll": "mean of -log p(target), in nats; smaller is better",
    "crps": "continuous ranked probability score, in units of the target; smaller is better",
    "calibration_error": "mean gap between predicted and observed frequencies; 0 is best",
    "coverage_50": "share of targets inside the 50 % interval",
    "coverage_90": "share of targets inside the 90 % interval",
    "coverage_95": "share of targets inside the 95 % interval",
    "accuracy": "share of rows whose most probable class is right",
    "brier": "squared error of the probabilities; smaller is better",
    "entropy": "mean entropy of the probabilities, in nats; it should be near the nll",
}
