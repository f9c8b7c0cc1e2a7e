"""Scripts that launch a training: launchers, their options, the arguments they pass on, the job around them."""

import pytest

from trainlint.formats import Fragment

from .drafting import draft, fragment, fragments, options


def read(text: str, file: str = "run.sh") -> Fragment:
    return fragment(text, file)


def values(found: Fragment) -> dict[str, object]:
    return {path: value.value for path, value in found.values.items() if not path.startswith("launch.")}


def test_how_a_job_is_launched() -> None:
    found = read(
        "#SBATCH --gpus-per-node=4 --mem=2G\n#SBATCH --time=1-02:30\n#SBATCH -c 8\nexport A=b\ntorchrun t.py\n"
    )
    said = {path: value.value for path, value in found.values.items() if path.startswith("launch.")}
    assert {name: value.value for name, value in found.values["launch.env"].value.items()} == {"A": "b"}
    assert {**said, "launch.env": None} == {
        "launch.command": "torchrun t.py",
        "launch.env": None,
        "launch.gpus": 4,
        "launch.cpus": 8.0,
        "launch.time": 95400.0,
    }


def references(found: Fragment) -> set[tuple[str, str]]:
    return {(one.role, one.text) for one in found.references}


@pytest.mark.parametrize(
    "text",
    [
        "pip install transformers deepspeed accelerate\n",
        "python prepare_data.py --output data\n",
        "python -m pytest tests\n",
        "python evaluate.py --model out\n",
        "accelerate config\naccelerate test\n",
        "llamafactory-cli export merge.yaml\nllamafactory-cli chat chat.yaml\n",
        "tune download meta-llama/Llama-3.2-1B\n",
        "cat <<EOF > train.sh\ntorchrun train.py\nEOF\n",
        "# torchrun train.py\n",
        "#SBATCH --gres=gpu:1\nnvidia-smi\n",
        "python -c 'import train'\n",
        "docker build -t train .\n",
        "brew install python\n",
    ],
)
def test_scripts_that_train_nothing_are_left_alone(text: str) -> None:
    assert fragments(text, "run.sh") == []


def test_a_trainers_arguments_make_a_run() -> None:
    found = read(
        "torchrun --nproc_per_node=4 train.py \\\n"
        "  --model_name_or_path a/b --bf16 True --tf32=False --fp16 \\\n"
        "  --per-device-train-batch-size 4 --learning_rate 2e-5 --fsdp 'full_shard auto_wrap'\n"
    )
    assert found.format == "shell-launcher"
    assert found.launches
    assert found.framework == "transformers"
    assert references(found) == {("model", "a/b"), ("script", "train.py")}
    known = values(found)
    assert known["precision.bf16"] is True
    assert known["precision.tf32"] is False
    assert known["precision.fp16"] is True
    assert known["batch.micro"] == 4
    assert known["parallel.per_node"] == 4
    assert known["sharding.strategy"] == "FULL_SHARD"
    rate = found.values["optimizer.lr"]
    assert (rate.key, rate.raw, rate.value, rate.file_format) == ("--learning_rate", "2e-5", 2e-5, "shell-launcher")
    assert rate.place is not None
    assert rate.place[1:] == (3, 51, 3, 55)
    assert found.values["batch.micro"].key == "--per-device-train-batch-size"
    entry = found.entry("bf16")
    assert entry is not None
    assert entry.key.place[1:] == (2, 30, 2, 34)


def test_the_trainers_defaults_follow() -> None:
    text = "deepspeed --num_gpus 8 train.py --model_name_or_path a/b --per_device_train_batch_size 4 --fp16\n"
    made = draft(text, file="run.sh", transformers="4.50.0")
    assert made.get("framework") == "transformers"
    assert made.get("batch.accumulation") == 1
    assert made.get("precision.compute") == "float16"
    assert made.get("parallel.per_node") == 8


def test_values_that_only_a_run_decides_get_no_default() -> None:
    text = 'torchrun train.py --per_device_train_batch_size "$1" --bf16 $BF16 --output_dir out --save_strategy no\n'
    made = draft(text, file="run.sh")
    assert made.get("batch.micro") is None
    assert options(made, "precision.bf16") == {True, False}
    assert made.get("batch.accumulation") == 1


def test_an_unknown_variable_that_may_hold_arguments_keeps_all_defaults_away() -> None:
    text = 'if [ "$1" ]; then EXTRA="--fp16"; fi\ntorchrun t.py --per_device_train_batch_size 4 $EXTRA\n'
    made = draft(text, file="run.sh")
    assert made.get("batch.micro") == 4
    assert made.get("batch.accumulation") is None
    assert made.get("precision.fp16") is None


def test_no_before_a_flag_turns_it_off() -> None:
    found = read("torchrun t.py --per_device_train_batch_size 4 --no_bf16\n")
    assert values(found)["precision.bf16"] is False
    assert found.values["precision.bf16"].key == "--no_bf16"


def test_an_option_with_one_dash_is_none() -> None:
    found = read("torchrun t.py --per_device_train_batch_size 4 -learning_rate 1e-4\n")
    assert "optimizer.lr" not in found.values


@pytest.mark.parametrize(
    ("text", "trainer"),
    [
        ("torchrun t.py --per_device_train_batch_size 4", "transformers"),
        ("accelerate launch t.py --model_name_or_path a/b --use_peft --learning_rate 1e-4", "trl"),
        ("trl sft --model_name_or_path a/b --dataset_name c/d", "trl"),
        ("python src/train.py --stage sft --finetuning_type lora --template qwen", "llamafactory"),
        ("llamafactory-cli train --stage sft --model_name_or_path a/b", "llamafactory"),
        ("accelerate launch t.py --pretrained_model_name_or_path a/b --max_train_steps 10", "diffusers"),
        ("accelerate launch t.py --batch_size 24 --learning_rate 0.01", ""),
        ("torchrun run_glue_no_trainer.py --per_device_train_batch_size 32", ""),
        ("torchrun pretrain_gpt.py --micro-batch-size 4 --bf16 --lr 1e-4", ""),
        ("deepspeed t.py --train_batch_size 4 --fp16 --learning_rate 1e-4 --warmup_ratio 0.1", ""),
    ],
)
def test_whose_arguments_they_are(text: str, trainer: str) -> None:
    found = read(text + "\n")
    assert found.facts["trainer"] == trainer
    assert found.launches == bool(trainer)
    assert ("optimizer.lr" in found.values) == (bool(trainer) and "learning_rate" in text)


def test_llama_factory_keys_are_read_by_its_own_format() -> None:
    text = "deepspeed --num_gpus 4 src/train.py --deepspeed z3.json --stage dpo --finetuning_type full --do_train\n"
    found = read(text + "echo done\n")
    assert (values(found)["method"], values(found)["objective"]) == ("full", "dpo")
    assert ("deepspeed", "z3.json") in references(found)
    assert draft(text, file="run.sh").get("framework") == "llamafactory"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("accelerate launch --config_file fsdp.yaml grpo.py --config grpo.yaml",
         {("accelerate", "fsdp.yaml"), ("script", "grpo.py"), ("config", "grpo.yaml")}),
        ("accelerate launch --multi_gpu -m axolotl.cli.train llama.yml", {("config", "llama.yml")}),
        ("axolotl train llama.yml --learning-rate 1e-4", {("config", "llama.yml")}),
        ("FORCE_TORCHRUN=1 llamafactory-cli train sft.yaml", {("config", "sft.yaml")}),
        ("tune run --nproc_per_node 2 full_finetune_distributed --config full.yaml", {("config", "full.yaml")}),
        ("mlx_lm.lora --config lora.yaml --train", {("config", "lora.yaml")}),
        ("python -m mlx_lm.lora -c lora.yaml", {("config", "lora.yaml")}),
        ("trl sft --config sft.yaml --accelerate_config zero3.yaml",
         {("config", "sft.yaml"), ("accelerate", "zero3.yaml")}),
        ("swift sft --config sft.yaml", {("config", "sft.yaml")}),
        ("python -m torch.distributed.run --nproc_per_node 2 train.py", {("script", "train.py")}),
        ("uv run accelerate launch train.py", {("script", "train.py")}),
        ("uv run train.py", {("script", "train.py")}),
        ("nohup torchrun --standalone train.py > log 2>&1 &", {("script", "train.py")}),
        ("python train.py sft.yaml", {("script", "train.py"), ("config", "sft.yaml")}),
        ("srun python main.py fit --config lightning.yaml", {("script", "main.py"), ("config", "lightning.yaml")}),
        ("deepspeed train.py --deepspeed_config ds.json", {("script", "train.py"), ("deepspeed", "ds.json")}),
        ("accelerate launch --use_deepspeed --deepspeed_config_file ds.json t.py",
         {("script", "t.py"), ("deepspeed", "ds.json")}),
    ],
)  # fmt: skip
def test_what_only_starts_something_joins_it(text: str, names: set[tuple[str, str]]) -> None:
    found = read(text + "\n")
    assert references(found) == names
    assert not found.launches


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("torchrun t.py", {"parallel.per_node": 1}),
        ("torchrun --nnodes 2 --nproc-per-node 8 t.py", {"parallel.per_node": 8, "parallel.nodes": 2}),
        ("torchrun --nnodes $NODES --nproc_per_node 8 t.py", {}),
        ("torchrun --nproc_per_node gpu t.py", {}),
        ("N=4\ntorchrun --nproc_per_node $N t.py", {"parallel.per_node": 4}),
        ("accelerate launch --num_processes 8 --num_machines 2 --mixed_precision bf16 t.py",
         {"parallel.world": 8, "parallel.nodes": 2, "precision.mixed": "bf16"}),
        ("accelerate launch --use_deepspeed --zero_stage 3 t.py", {"sharding.kind": "zero3"}),
        ("accelerate launch t.py", {}),
        ("deepspeed --num_gpus=4 --num_nodes=2 t.py", {"parallel.per_node": 4, "parallel.nodes": 2}),
        ("deepspeed --include localhost:0,1,3 t.py", {"parallel.world": 3}),
        ("deepspeed --include worker-0 t.py", {}),
        ("python train.py", {"parallel.world": 1}),
        ("mpirun -np 4 python train.py", {}),
        ("CUDA_VISIBLE_DEVICES=0,1 python train.py", {"parallel.world": 1, "device.count": 2}),
        ("export CUDA_VISIBLE_DEVICES=3\ntorchrun t.py", {"parallel.per_node": 1, "device.count": 1}),
        ("NPROC_PER_NODE=4 llamafactory-cli train a.yaml", {"parallel.per_node": 4}),
    ],
)  # fmt: skip
def test_launchers_say_how_many_processes(text: str, known: dict[str, object]) -> None:
    assert values(read(text + "\n")) == known


@pytest.mark.parametrize(
    ("directives", "known"),
    [
        (["--gres=gpu:a100:4", "--nodes=1"], {"device.count": 4, "device.name": "a100", "parallel.nodes": 1}),
        (["--gres=gpu:4", "-N 2"], {"device.count": 8, "parallel.nodes": 2}),
        (["--gres gpu:h100:8"], {"device.count": 8, "device.name": "h100"}),
        (["--gpus-per-node=4", "--nodes=2"], {"device.count": 8, "parallel.nodes": 2}),
        (["--gpus=h100:6", "--nodes=2"], {"device.count": 6, "device.name": "h100", "parallel.nodes": 2}),
        (["--gres=gpu:4", "--nodes=1-4"], {}),
        (["--mem=64G"], {"device.host_memory": 64 << 30}),
        (["--mem=64000"], {"device.host_memory": 64000 << 20}),
        (["--mem=64Gb"], {}),
        (["--mem=0", '--gres="gpu:1"  # one'], {"device.count": 1}),
    ],
)
def test_slurm_directives_say_what_the_job_has(directives: list[str], known: dict[str, object]) -> None:
    head = "".join(f"#SBATCH {directive}\n" for directive in directives)
    found = values(read(f"#!/bin/bash\n{head}\nsrun accelerate launch train.py\n", "job.slurm"))
    assert found == known


def test_directives_behind_the_first_command_are_comments() -> None:
    assert values(read("cd x\n#SBATCH --nodes=2\naccelerate launch train.py\n", "job.slurm")) == {}


def test_a_directive_stands_where_its_value_stands() -> None:
    found = read("#SBATCH --mem=64G\naccelerate launch train.py\n", "job.sbatch")
    memory = found.values["device.host_memory"]
    assert memory.place is not None
    assert (memory.key, memory.unit, memory.raw, memory.place[1:]) == ("#SBATCH --mem", "byte", "64G", (1, 15, 1, 18))


def test_a_job_that_starts_a_script_joins_it() -> None:
    found = read("#SBATCH --gres=gpu:4\nsrun bash run.sh\n", "job.slurm")
    assert references(found) == {("script", "run.sh")}
    assert values(found) == {"device.count": 4}


def test_of_several_launches_the_one_that_says_most_counts() -> None:
    text = "python train.py --help\ntorchrun --nproc_per_node 2 sft.py --per_device_train_batch_size 4\n"
    found = read(text)
    assert values(found)["batch.micro"] == 4
    assert references(found) == {("script", "train.py"), ("script", "sft.py")}
    starts = found.facts["starts"]
    assert isinstance(starts, tuple)
    assert len(starts) == 2


def test_arguments_in_a_variable_stand_where_it_is_set() -> None:
    found = read('ARGS="\n  --per_device_train_batch_size 4\n  --bf16 True"\ntorchrun train.py $ARGS\n')
    place = found.values["batch.micro"].place
    assert place is not None
    assert place[1:] == (2, 33, 2, 34)


def test_json_in_an_argument_is_read() -> None:
    text = "torchrun t.py --per_device_train_batch_size 4 --gradient_checkpointing --gradient_checkpointing_kwargs "
    found = read(text + "'{\"use_reentrant\": false}'\n")
    assert values(found)["checkpointing.reentrant"] is False


def test_commands_are_kept_for_rules() -> None:
    found = read("#SBATCH --time=60\ntorchrun t.py --lr 1 \\\n  # --fp16 \\\n  --bf16\n", "job.slurm")
    commands, slurm = found.facts["commands"], found.facts["slurm"]
    assert isinstance(commands, tuple)
    assert isinstance(slurm, dict)
    assert [command.cut is not None for command in commands] == [True, False]
    assert slurm["time"].text == "60"


def test_files_lie_where_the_script_has_gone() -> None:
    found = read(
        "cd code\ntorchrun train.py --config a.yaml\ncd ../x && bash y.sh\ncd /data\npython train.py --config b.yaml\n"
    )
    assert references(found) == {
        ("script", "code/train.py"),
        ("config", "code/a.yaml"),
        ("script", "x/y.sh"),
        ("script", "train.py"),
        ("config", "b.yaml"),
    }
