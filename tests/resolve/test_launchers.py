"""Launchers and the runs they start: one run for each way, hardware and versions from the launcher."""

from __future__ import annotations

from .runs import Folder, folder, value

__all__ = ["folder"]

TRAINER = "output_dir: out\nper_device_train_batch_size: 8\nlearning_rate: 1.0e-5\nnum_train_epochs: 3\nbf16: true\n"
POD = """\
apiVersion: v1
kind: Pod
spec:
  nodeSelector: {{gpu-type: {device}}}
  containers:
    - name: a
      command: [{command}]
      resources: {{limits: {{nvidia.com/gpu: {count}, memory: 64Gi}}}}
"""


def pod(device: str, count: int, command: str = "accelerate, launch, train.py, --config, sft.yaml") -> str:
    return POD.format(device=device, count=count, command=command)


def test_a_manifest_says_what_a_run_runs_on(folder: Folder) -> None:
    folder.file("sft.yaml", TRAINER)
    folder.file("k8s/job.yaml", pod("l4", 4))
    run = folder.run()
    assert run.files == ("sft.yaml", "k8s/job.yaml")
    assert (value(run, "device.name"), value(run, "device.count")) == ("l4", 4)
    assert value(run, "device.host_memory") == 64 << 30
    assert value(run, "device.capability") == 8.9
    assert value(run, "parallel.world") == 4


def test_each_way_to_start_a_config_is_a_run(folder: Folder) -> None:
    folder.file("sft.yaml", TRAINER)
    folder.file("a.yaml", pod("l4", 4))
    folder.file("b.yaml", pod("h100", 8))
    folder.file("c.yaml", pod("h100", 8))  # says what b.yaml says
    started = [found.run for found in folder.resolved() if found.run.root == "sft.yaml"]
    assert [(run.files[1], value(run, "device.name")) for run in started] == [("a.yaml", "l4"), ("b.yaml", "h100")]


def test_of_many_launchers_it_is_not_known_which(folder: Folder) -> None:
    folder.file("sft.yaml", TRAINER)
    for count in range(1, 11):
        folder.file(f"job{count}.yaml", pod("l4", count))
    run = folder.run()
    assert run.files == ("sft.yaml",)
    assert run.get("device.name") is None


def test_a_launcher_may_start_another(folder: Folder) -> None:
    folder.file("sft.yaml", TRAINER)
    folder.file("run.sh", "accelerate launch --num_processes 2 train.py --config sft.yaml\n")
    folder.file("task.yaml", "resources: {accelerators: 'L4:2'}\nrun: bash run.sh\n")
    run = folder.run()
    assert run.files == ("sft.yaml", "run.sh", "task.yaml")
    assert (value(run, "device.name"), value(run, "parallel.world")) == ("L4", 2)


def test_a_launcher_takes_no_other_launcher_into_its_run(folder: Folder) -> None:
    folder.file("a.yaml", TRAINER)
    folder.file("b.yaml", TRAINER)
    folder.file("b.sh", "accelerate launch --num_processes 8 train.py --config b.yaml\n")
    folder.file("all.yaml", "resources: {accelerators: 'L4:2'}\nrun: |\n  trl sft --config a.yaml\n  bash b.sh\n")
    files = {found.run.root: found.run.files for found in folder.resolved()}
    assert files["a.yaml"] == ("a.yaml", "all.yaml")
    assert files["b.yaml"] == ("b.yaml", "b.sh", "all.yaml")


def test_each_training_of_a_launcher_has_its_own_engine(folder: Folder) -> None:
    folder.file("a.yaml", TRAINER)
    folder.file("b.yaml", TRAINER)
    folder.file("z3.json", '{"zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": "auto"}')
    folder.file(
        "Makefile",
        "a:\n\taccelerate launch train.py --config a.yaml --deepspeed z3.json\n"
        "b:\n\taccelerate launch --num_processes 2 train.py --config b.yaml\n",
    )
    runs = {found.run.root: found.run for found in folder.resolved() if found.fragments[0].launches}
    assert runs["a.yaml"].files == ("a.yaml", "Makefile", "z3.json")
    assert runs["b.yaml"].files == ("b.yaml", "Makefile")
    assert value(runs["b.yaml"], "parallel.world") == 2
    assert runs["a.yaml"].get("parallel.world") is None


def test_the_versions_a_launcher_installs_are_the_runs(folder: Folder) -> None:
    folder.file("sft.yaml", TRAINER)
    folder.file("requirements.txt", "transformers==4.40.0\ntorch==2.4.0\n")
    folder.file(
        "task.yaml", "resources: {accelerators: L4}\nsetup: pip install transformers==4.57.0\nrun: |\n  bash r.sh\n"
    )
    folder.file("r.sh", "accelerate launch train.py --config sft.yaml\n")
    versions = folder.run().versions
    assert (versions["transformers"].value, versions["torch"].value) == ("4.57.0", "2.4.0")


def test_a_command_with_a_trainers_arguments_is_the_root(folder: Folder) -> None:
    command = "torchrun, --nproc_per_node=2, train.py, --model_name_or_path, gpt2, --per_device_train_batch_size, '4'"
    folder.file("job.yaml", pod("l4", 2, command))
    folder.file(
        "train.py", "from transformers import Trainer, TrainingArguments\nTrainer(args=TrainingArguments('o'))\n"
    )
    run = folder.run()
    assert (run.root, run.root_format) == ("job.yaml", "kubernetes")
    assert run.files == ("job.yaml", "train.py")
    assert (value(run, "batch.micro"), value(run, "framework")) == (4, "transformers")
    assert value(run, "batch.effective") == 8
