"""Save and load fitted estimators, and write checkpoints of training runs."""
