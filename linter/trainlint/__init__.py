"""trainlint: the linter for machine-learning training configs."""
