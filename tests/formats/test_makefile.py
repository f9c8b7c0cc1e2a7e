"""Makefiles: recipes that train."""

from .drafting import fragments
from .launching import files, launcher, place, said, taken

TEXT = """\
CONFIG = configs/sft.yaml
GPUS ?= 4  # of them
MODEL := $(shell cat model)
export WANDB_MODE = offline

.PHONY: train
train: data
\t@echo training
\tcd code && accelerate launch --num_processes $(GPUS) \\
\t  train.py --config $(CONFIG) --model $(MODEL) --run $$USER

data: ; python prepare.py
"""


def test_a_recipe_that_trains() -> None:
    found = launcher(TEXT, "makefile", "Makefile")
    assert said(found, "parallel") == {"parallel.world": 4}
    assert place(found, "parallel.world") == (2, 9)
    assert files(found) == {("script", "code/train.py"), ("config", "code/configs/sft.yaml")}
    assert place(found, "launch.command") == (9, 13)


def test_each_launch_is_a_fragment() -> None:
    text = "a:\n\ttrl sft --config a.yaml\nb:\n\ttrl dpo --config b.yaml\n"
    assert [files(one) for one in fragments(text, "Makefile")] == [{("config", "a.yaml")}, {("config", "b.yaml")}]


def test_a_variable_that_is_set_again_is_not_known() -> None:
    text = "N = 4\nN = 8\na:\n\taccelerate launch --num_processes $(N) train.py\n"
    assert said(launcher(text, "makefile", "x.mk"), "parallel") == {}


def test_makefiles_that_do_not_train_are_left_alone() -> None:
    assert taken("test:\n\tpython -m pytest\ninstall:\n\tpip install accelerate\n", "Makefile") == []
    assert taken("# a:\n#\ttorchrun train.py\n", "Makefile") == []
    assert taken("torchrun train.py\n", "Makefile") == []
