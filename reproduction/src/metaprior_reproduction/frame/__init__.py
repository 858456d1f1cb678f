"""What runs items: the calls that are missing, the files of the runs, and the result with its verdicts and figures."""
