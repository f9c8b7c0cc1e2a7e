"""GitHub workflows: only steps that train."""

from .drafting import fragments
from .launching import files, launcher, said, taken

WORKFLOW = """\
on: push
env: {A: 1}
jobs:
  train:
    runs-on: [self-hosted, gpu]
    timeout-minutes: 30
    container: {image: a/b}
    steps:
      - uses: actions/checkout@v4
      - run: pip install trl==0.19.0
      - working-directory: code
        env: {B: 2}
        run: |
          torchrun --nproc_per_node ${{ matrix.gpus }} train.py
"""


def test_a_step_that_trains() -> None:
    found = launcher(WORKFLOW, "github-workflow", ".github/workflows/a.yml")
    assert said(found) == {
        "launch.time": 1800.0,
        "launch.image": "a/b",
        "launch.env": {"A": "1", "B": "2"},
        "launch.command": "torchrun --nproc_per_node ${{ matrix.gpus }} train.py",
        "versions.trl": "0.19.0",
    }
    assert files(found) == {("script", "code/train.py")}


def test_steps_that_train_are_runs_of_their_own() -> None:
    text = WORKFLOW + "      - run: trl sft --config a.yaml\n"
    assert [one.format for one in fragments(text)] == ["github-workflow"] * 2


def test_workflows_that_do_not_train_are_left_alone() -> None:
    assert taken(WORKFLOW.replace("torchrun --nproc_per_node ${{ matrix.gpus }} train.py", "python -m pytest")) == []
    assert taken("on: push\njobs: {a: {uses: x}}\n") == []
    assert taken("name: torchrun train.py\non: push\njobs: {}\n") == []
