"""The project as others get it: its wheel in a folder, and a Python that sees nothing else of it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
MAIN = "import sys; from trainlint.cli import main; sys.exit(main())"


def build(source: Path, target: Path) -> Path:
    """Build the wheel of a project without network; the build backend is among the dev dependencies."""
    command = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(target), str(source)]
    subprocess.run([sys.executable, "-m", "pip", *command], check=True, capture_output=True)
    (wheel,) = target.glob("*.whl")
    return wheel


def install(wheel: Path, target: Path) -> Path:
    """Unpack a wheel as pip does, into a folder."""
    command = ["install", "--quiet", "--no-deps", "--no-index", "--target", str(target), str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", *command], check=True, capture_output=True)
    return target


def dependencies(folder: Path) -> Path:
    """What trainlint depends on, as links: the installed packages without trainlint itself."""
    folder.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "trainlint" not in path.name and path.suffix != ".pth":
            (folder / path.name).symlink_to(path)
    return folder


@dataclass(frozen=True)
class Python:
    """A Python that finds packages in some folders alone."""

    folders: tuple[Path, ...]

    def run(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run it with arguments; the exit code is the caller's to judge."""
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV_"))}
        environ["PYTHONPATH"] = os.pathsep.join(str(folder) for folder in self.folders)
        environ["PYTHONDONTWRITEBYTECODE"] = "1"
        command = [sys.executable, "-S", *arguments]
        return subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, check=False)

    def trainlint(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run trainlint's command line."""
        return self.run("-c", MAIN, *arguments, cwd=cwd)
