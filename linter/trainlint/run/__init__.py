"""The framework-neutral training run, every value with its provenance."""

from trainlint.run.training import TrainingRun
from trainlint.run.value import Origin, Value, known
from trainlint.run.vocabulary import PathInfo, build, path_info, paths

__all__ = ["Origin", "PathInfo", "TrainingRun", "Value", "build", "known", "path_info", "paths"]
