"""Files: fitted estimators that are saved and loaded, and checkpoints of runs."""
