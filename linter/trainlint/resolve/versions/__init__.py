"""Which versions of the frameworks a tree asks for: lock files, requirements, projects, environments, containers."""

from trainlint.resolve.versions.folder import versions_at
from trainlint.resolve.versions.requirement import PACKAGES

__all__ = ["PACKAGES", "versions_at"]
