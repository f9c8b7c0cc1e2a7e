from __future__ import annotations

from pathlib import Path

import pytest

from trainlint.resolve.versions import versions_at
from trainlint.resolve.versions.folder import _versions_at

from .runs import Folder, folder

__all__ = ["folder"]


@pytest.fixture(autouse=True)
def fresh() -> None:
    _versions_at.cache_clear()


def found(where: Path) -> dict[str, str]:
    _versions_at.cache_clear()
    return {name: value.value for name, value in versions_at(where).items()}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("transformers==4.41.2", {"transformers": "4.41.2"}),
        ("transformers===4.41.2", {"transformers": "4.41.2"}),
        ("transformers == 4.41.2", {"transformers": "4.41.2"}),
        ("transformers>=4.46,<5", {"transformers": ">=4.46,<5"}),
        ("transformers >= 4.46, < 5", {"transformers": ">=4.46,<5"}),
        ("transformers~=4.46.0", {"transformers": "~=4.46.0"}),
        ("transformers[torch,sentencepiece]==4.41.2", {"transformers": "4.41.2"}),
        ("Flash_Attn==2.6.3", {"flash-attn": "2.6.3"}),
        ("torch==2.4.0+cu121", {"torch": "2.4.0+cu121"}),
        ("torch==2.6.*", {"torch": "==2.6.*"}),
        ("trl==0.9.6  # pinned for DPO", {"trl": "0.9.6"}),
        ("trl==0.9.6 ; python_version >= '3.9'", {"trl": "0.9.6"}),
        ("    peft==0.14.0 \\", {"peft": "0.14.0"}),
        ("transformers", {}),
        ("numpy==2.0", {}),
        ("# transformers==4.41.2", {}),
        ("-r other.txt", {}),
        ("--extra-index-url https://example.org/torch==2.0", {}),
        ("git+https://github.com/huggingface/trl.git@main", {}),
        ("trl @ git+https://github.com/huggingface/trl.git", {}),
        ("torch==2.6.0; extra == 'gpu'", {}),
    ],
)
def test_requirement_lines(folder: Folder, line: str, expected: dict[str, str]) -> None:
    folder.file("requirements.txt", f"{line}\n")
    assert found(folder.path) == expected


def test_versions_know_their_place(folder: Folder) -> None:
    folder.file("requirements.txt", "# versions\n  trl==0.9.6\n")
    value = versions_at(folder.path)["trl"]
    assert value.place is not None
    assert value.place[:5] == ("requirements.txt", 2, 3, 2, 13)
    assert (value.key, value.raw, value.file_format, value.origin) == ("trl", "==0.9.6", "requirements", "written")


def test_files_that_are_looked_at(folder: Folder) -> None:
    folder.file("requirements-dev.txt", "trl==0.9.6\n")
    folder.file("requirements.in", "peft==0.14.0\n")
    folder.file("requirements.md", "torch==1.0\n")
    folder.file("reqs.txt", "torch==1.0\n")
    folder.file("pyproject.toml", '[project]\ndependencies = ["accelerate>=1.0", "torch[extra]==2.6.0"]\n')
    assert found(folder.path) == {"trl": "0.9.6", "peft": "0.14.0", "accelerate": ">=1.0", "torch": "2.6.0"}


LOCK = """\
version = 1

[[package]]
name = "transformers"
version = "4.57.1"
source = { registry = "https://pypi.org/simple" }

[[package]]
name = "flash_attn"
version = "2.8.0.post2"

[[package]]
name = "numpy"
version = "2.0.0"
"""


@pytest.mark.parametrize("name", ["uv.lock", "poetry.lock", "pdm.lock", "pylock.toml"])
def test_lock_files_win_over_what_asks(folder: Folder, name: str) -> None:
    folder.file("requirements.txt", "transformers>=4.40\ntrl==0.9.6\n")
    folder.file(name, LOCK)
    assert found(folder.path) == {"transformers": "4.57.1", "flash-attn": "2.8.0.post2", "trl": "0.9.6"}
    place = versions_at(folder.path)["transformers"].place
    assert place is not None
    assert (place.file, place.line) == (name, 5)


def test_the_nearest_file_wins_up_to_the_repository(folder: Folder) -> None:
    folder.file("../requirements.txt", "torch==1.0.0\n")
    folder.file("requirements.txt", "trl==0.9.6\npeft==0.14.0\n")
    folder.file("a/requirements.txt", "trl==0.12.0\n")
    (folder.path / "a" / "b").mkdir()
    assert found(folder.path / "a" / "b") == {"trl": "0.12.0", "peft": "0.14.0"}
    assert found(folder.path) == {"trl": "0.9.6", "peft": "0.14.0"}


@pytest.mark.parametrize(
    "data", [b"\xff\xfe\x00", b"trl==", b"==1.0", b"trl==0.9.6" * 1000, b"(" * 1000, b"a" * 100_000]
)
def test_broken_files_say_nothing(folder: Folder, data: bytes) -> None:
    for name in ("requirements.txt", "uv.lock", "pyproject.toml"):
        (folder.path / name).write_bytes(data)
    assert found(folder.path) == {}


def test_folders_in_place_of_files(folder: Folder) -> None:
    for name in ("requirements.txt", "uv.lock", "pyproject.toml"):
        (folder.path / name).mkdir()
    assert found(folder.path) == {}
    assert found(folder.path / "gone") == {}


def test_settings_win_over_files(folder: Folder) -> None:
    folder.file("requirements.txt", "trl==0.9.6\ntransformers==4.41.2\n")
    folder.file("trainlint.toml", 'versions = { trl = "0.12" }\n')
    folder.file("run.yaml", "trainlint: run\nversions: {peft: '0.14'}\n")
    run = folder.run()
    assert {name: value.value for name, value in run.versions.items()} == {
        "trl": "0.12",
        "transformers": "4.41.2",
        "peft": "0.14",
    }
    assert run.get("versions.trl") == run.versions["trl"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("trl==0.9.6 --hash=sha256:0123 --hash=sha256:4567", {"trl": "0.9.6"}),
        ("trl @ git+https://github.com/huggingface/trl.git@v0.9.6", {"trl": "0.9.6"}),
        ("git+https://github.com/huggingface/trl.git@v0.9.6", {"trl": "0.9.6"}),
        ("-e git+https://github.com/huggingface/trl.git@v0.9.6#egg=trl", {"trl": "0.9.6"}),
        (
            "https://example.org/v2.8.0/flash_attn-2.8.0+cu12torch2.6-cp311-cp311-linux_x86_64.whl",
            {"flash-attn": "2.8.0+cu12torch2.6"},
        ),
        ("transformers (>=4.40,<5)", {"transformers": ">=4.40,<5"}),
        ("torch==2.2.2; sys_platform == 'darwin'", {}),
        ("torch==2.6.0; sys_platform != 'darwin'", {"torch": "2.6.0"}),
        ("torch==2.6.0; platform_system == 'Windows'", {}),
        ("mlx==0.20.0; sys_platform == 'darwin'", {"mlx": "0.20.0"}),
        ("torch==2.6.0; sys_platform == 'darwin' or python_version >= '3.9'", {"torch": "2.6.0"}),
    ],
)
def test_further_requirement_lines(folder: Folder, line: str, expected: dict[str, str]) -> None:
    folder.file("requirements.txt", f"{line}\n")
    assert found(folder.path) == expected


def test_requirement_files_include_others(folder: Folder) -> None:
    folder.file("requirements.txt", "-r requirements/base.txt\n-c limits.txt\ntransformers>=4.40\ntrl==0.9.6\n")
    folder.file("requirements/base.txt", "-r ../requirements.txt\npeft==0.14.0\ntrl==0.8.0\n")
    folder.file("limits.txt", "transformers==4.44.2\n")
    assert found(folder.path) == {"peft": "0.14.0", "trl": "0.9.6", "transformers": "4.44.2"}
    assert versions_at(folder.path)["transformers"].place == ("limits.txt", 1, 1, 1, 21)


def test_what_pip_tools_writes(folder: Folder) -> None:
    folder.file("requirements.in", "transformers>=4.40\n")
    folder.file(
        "requirements.txt",
        "# autogenerated by pip-compile\n"
        "transformers==4.44.2 \\\n    --hash=sha256:ab \\\n    --hash=sha256:cd\n    # via -r requirements.in\n"
        "trl==0.9.6\n    # via -r requirements.in\n",
    )
    assert found(folder.path) == {"transformers": "4.44.2", "trl": "0.9.6"}
    assert versions_at(folder.path)["trl"].place == ("requirements.txt", 6, 1, 6, 11)


def test_constraints_win(folder: Folder) -> None:
    folder.file("requirements.txt", "transformers>=4.40\n")
    folder.file("constraints-cuda.txt", "transformers==4.44.2\n")
    assert found(folder.path) == {"transformers": "4.44.2"}


def test_files_that_disagree_say_nothing(folder: Folder) -> None:
    folder.file("requirements-cpu.txt", "torch==2.4.0\ntrl==0.9.6\n")
    folder.file("requirements-gpu.txt", "torch==2.6.0\ntrl==0.9.6\n")
    assert found(folder.path) == {"trl": "0.9.6"}
    folder.file("requirements.txt", "torch==2.5.0\n")
    assert found(folder.path) == {"trl": "0.9.6", "torch": "2.5.0"}


def test_markers_that_are_not_known_decide(folder: Folder) -> None:
    folder.file(
        "requirements.txt",
        "torch==2.4.0; python_version < '3.12'\ntorch==2.6.0; python_version >= '3.12'\ntrl==0.9.6\n",
    )
    assert found(folder.path) == {"trl": "0.9.6"}


def test_a_branch_hides_what_a_folder_above_pins(folder: Folder) -> None:
    folder.file("requirements.txt", "transformers==4.44.2\n")
    folder.file("sft/requirements.txt", "git+https://github.com/huggingface/transformers@main\n")
    assert found(folder.path / "sft") == {}


def test_a_range_gives_way_to_a_pin_inside_of_it(folder: Folder) -> None:
    folder.file("uv.lock", LOCK)
    folder.file("packages/sft/pyproject.toml", '[project]\ndependencies = ["transformers>=4.50", "flash-attn<2"]\n')
    assert found(folder.path / "packages" / "sft") == {"transformers": "4.57.1", "flash-attn": "<2"}


PYPROJECT = """\
[build-system]
requires = ["torch==1.0.0"]

[project]
dependencies = [
  "transformers[torch] >= 4.44, < 5",
  "trl==0.9.6",
]

[project.optional-dependencies]
cpu = ["torch==2.4.0", "peft==0.14.0"]
gpu = ["torch==2.6.0", "deepspeed==0.15.4"]

[dependency-groups]
dev = ["trl==0.1.0", "peft==0.14.0"]
"""


def test_pyproject_lists(folder: Folder) -> None:
    folder.file("pyproject.toml", PYPROJECT)
    assert found(folder.path) == {
        "transformers": ">=4.44,<5",
        "trl": "0.9.6",
        "peft": "0.14.0",
        "deepspeed": "0.15.4",
    }
    place = versions_at(folder.path)["trl"].place
    assert place == ("pyproject.toml", 7, 4, 7, 14)


POETRY = """\
[tool.poetry.dependencies]
python = "^3.11"
transformers = "^4.44"
trl = {version = "0.9.6", extras = ["peft"]}
torch = "*"
bitsandbytes = {version = "0.43.1", optional = true}
accelerate = {git = "https://github.com/huggingface/accelerate.git", tag = "v1.2.0"}

[tool.poetry.dependencies.deepspeed]
version = "~0.15"

[tool.poetry.group.train.dependencies]
peft = "0.14.0"
"""


def test_poetry_tables(folder: Folder) -> None:
    folder.file("pyproject.toml", POETRY)
    assert found(folder.path) == {
        "transformers": "^4.44",
        "trl": "0.9.6",
        "accelerate": "1.2.0",
        "deepspeed": "~0.15",
        "peft": "0.14.0",
        "bitsandbytes": "0.43.1",
    }


def test_pipenv(folder: Folder) -> None:
    folder.file("Pipfile", '[packages]\ntransformers = "==4.44.2"\ntrl = "*"\npeft = ">=0.12"\n')
    assert found(folder.path) == {"transformers": "4.44.2", "peft": ">=0.12"}
    folder.file(
        "Pipfile.lock",
        '{\n "default": {\n  "peft": {\n   "hashes": ["sha256:ab"],\n   "version": "==0.14.0"\n  }\n },\n'
        ' "develop": {"trl": {"version": "==0.9.6"}}\n}\n',
    )
    assert found(folder.path) == {"transformers": "4.44.2", "peft": "0.14.0"}


def test_a_lock_of_several_releases_says_nothing(folder: Folder) -> None:
    forks = '[[package]]\nname = "torch"\nversion = "{}"\n\n'
    folder.file("uv.lock", forks.format("2.4.0") + forks.format("2.6.0"))
    assert found(folder.path) == {}
    folder.file("uv.lock", forks.format("2.6.0") + forks.format("2.6.0+cu124"))
    assert found(folder.path) == {"torch": "2.6.0"}


CONDA = """\
name: train
dependencies:
  - python=3.11
  - pytorch=2.4.0=py3.11_cuda12.1
  - conda-forge::accelerate=1.2
  - deepspeed>=0.14,<0.16
  - peft==0.14.0
  - numpy
  - pip:
      - trl==0.9.6
      - transformers[torch]>=4.44
      - -r more.txt
"""


@pytest.mark.parametrize("name", ["environment.yml", "environment.yaml", "conda_env.yml"])
def test_conda_environments(folder: Folder, name: str) -> None:
    folder.file(name, CONDA)
    folder.file("more.txt", "torchao==0.7.0\n")
    assert found(folder.path) == {
        "torch": "2.4.0",
        "accelerate": "==1.2.*",
        "deepspeed": ">=0.14,<0.16",
        "peft": "0.14.0",
        "trl": "0.9.6",
        "transformers": ">=4.44",
        "torchao": "0.7.0",
    }


DOCKERFILE = """\
ARG TRL_VERSION=0.9.6
FROM pytorch/pytorch:2.2.0-cuda12.1-cudnn8-devel AS build
RUN pip install flash-attn==2.5.0
FROM pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime
# pip install torch==1.0
RUN apt-get install -y git && pip install --no-cache-dir "transformers==4.44.2" \\
      # a comment between
      'peft>=0.12' && \\
    echo deepspeed==0.1
RUN python -m pip install trl==${TRL_VERSION} accelerate==$UNSET -r extra.txt
"""


def test_dockerfiles(folder: Folder) -> None:
    folder.file("Dockerfile", DOCKERFILE)
    folder.file("extra.txt", "bitsandbytes==0.43.1\n")
    assert found(folder.path) == {
        "torch": "2.4.0",
        "transformers": "4.44.2",
        "peft": ">=0.12",
        "trl": "0.9.6",
        "bitsandbytes": "0.43.1",
    }
    places = {name: value.place for name, value in versions_at(folder.path).items()}
    assert places["torch"] == ("Dockerfile", 4, 6, 4, 51)
    assert places["peft"] == ("Dockerfile", 8, 8, 8, 18)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("huggingface/transformers-pytorch-gpu:4.41.2", {"transformers": "4.41.2"}),
        (
            "763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-training:2.1.0-transformers4.36.0-gpu",
            {"torch": "2.1.0", "transformers": "4.36.0"},
        ),
        ("rocm/pytorch:rocm6.2_ubuntu22.04_py3.10_pytorch_release_2.3.0", {"torch": "2.3.0"}),
        ("nvcr.io/nvidia/pytorch:24.05-py3", {}),
        ("pytorch/pytorch:latest", {}),
        ("base", {}),
    ],
)
def test_images_whose_tag_is_certain(folder: Folder, image: str, expected: dict[str, str]) -> None:
    folder.file("Dockerfile", f"FROM {image}\n")
    assert found(folder.path) == expected


def test_stages_build_on_each_other(folder: Folder) -> None:
    folder.file("Dockerfile", "FROM pytorch/pytorch:2.4.0-x AS base\nRUN pip install trl==0.9.6\nFROM base\n")
    assert found(folder.path) == {"torch": "2.4.0", "trl": "0.9.6"}


def test_setup_files(folder: Folder) -> None:
    folder.file(
        "setup.cfg",
        "[metadata]\nname = x\n[options]\npackages = find:\n"
        "install_requires =\n    transformers==4.44.2\n    trl>=0.9\n"
        "python_requires = >=3.10\n[options.extras_require]\ngpu = torch==2.0\n",
    )
    assert found(folder.path) == {"transformers": "4.44.2", "trl": ">=0.9"}
    folder.file(
        "setup.py", 'from setuptools import setup\nneeds = ["peft==0.14.0"]\nsetup(name="x", install_requires=needs)\n'
    )
    assert found(folder.path) == {"transformers": "4.44.2", "trl": ">=0.9", "peft": "0.14.0"}
    folder.file("setup.py", 'setup(install_requires=["torch==2.6.0", *more()])\n')
    assert found(folder.path)["torch"] == "2.6.0"


def test_the_image_of_a_job_counts_least(folder: Folder) -> None:
    folder.file(
        "compose.yaml",
        "services:\n  train:\n    image: pytorch/pytorch:2.4.0-cuda12.1\n"
        "    command: python train.py --config args.yaml\n"
        "    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 1, capabilities: [gpu]}]}}}\n",
    )
    folder.file(
        "args.yaml", "model_name_or_path: a/b\nper_device_train_batch_size: 1\noutput_dir: out\nlearning_rate: 1.0e-5\n"
    )
    run = next(found.run for found in folder.resolved() if "args.yaml" in found.run.files)
    assert {name: value.value for name, value in run.versions.items()} == {"torch": "2.4.0"}
