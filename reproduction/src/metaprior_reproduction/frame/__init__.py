"""Running items: which calls are missing, the stored runs, and the result with its verdicts and figures."""
