"""trainlint: the linter for machine-learning training configs."""

__version__ = "0.1.0"
