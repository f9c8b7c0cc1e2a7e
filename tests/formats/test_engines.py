from .drafting import fragment


def values(text, file):
    return {path: value.value for path, value in fragment(text, file).values.items()}


def test_deepspeed_numbers_and_engine():
    got = values(
        '{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": "auto", "train_batch_size": 64,'
        ' "fp16": {"enabled": true}, "optimizer": {"type": "Adam", "params": {"lr": 1e-4}},'
        ' "zero_optimization": {"stage": 3, "reduce_bucket_size": 2e8, "overlap_comm": false,'
        ' "offload_param": {"device": "cpu"}, "offload_optimizer": {"device": "nvme"}}}',
        "ds.json",
    )
    assert got == {
        "batch.micro": 4,
        "batch.effective": 64,
        "precision.fp16": True,
        "optimizer.name": "adamw_torch_fused",
        "optimizer.lr": 1e-4,
        "sharding.kind": "zero3",
        "sharding.reduce_bucket": 2e8,
        "sharding.overlap_comm": False,
        "sharding.offload_parameters": "cpu",
        "sharding.offload_optimizer": "nvme",
    }


def test_accelerate_reads_the_block_of_its_engine_alone():
    text = (
        "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 8\n"
        "num_machines: 2\ndeepspeed_config:\n  zero_stage: 3\n  gradient_accumulation_steps: 4\nfsdp_config:\n"
        "  fsdp_sharding_strategy: 2\n  fsdp_offload_params: 'true'\n  fsdp_state_dict_type: SHARDED_STATE_DICT\n"
        "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
    )
    assert values(text, "acc.yaml") == {
        "precision.mixed": "bf16",
        "parallel.world": 8,
        "parallel.nodes": 2,
        "sharding.kind": "fsdp",
        "sharding.strategy": "SHARD_GRAD_OP",
        "sharding.wrap": "block",
        "sharding.offload_parameters": "cpu",
        "sharding.offload_optimizer": "cpu",
        "checkpoint.full_state": False,
    }


def test_accelerate_starts_zero_2_where_no_stage_is_written():
    text = "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nnum_processes: 8\n"
    assert values(text, "acc.yaml")["sharding.kind"] == "zero2"
    assert values(text + "deepspeed_config:\n  zero_stage: 3\n", "acc.yaml")["sharding.kind"] == "zero3"


def test_a_deepspeed_file_says_the_stage():
    text = "distributed_type: DEEPSPEED\nnum_processes: 8\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n"
    found = fragment(text, "acc.yaml")
    assert "sharding.kind" not in found.values
    assert [(one.role, one.text) for one in found.references] == [("deepspeed", "ds.json")]


def test_fsdp_version_2():
    text = "distributed_type: FSDP\nmixed_precision: no\nfsdp_config:\n"
    text += "  fsdp_version: 2\n  fsdp_reshard_after_forward: true\n"
    got = values(text, "acc.yaml")
    assert (got["sharding.kind"], got["sharding.reshard_after_forward"]) == ("fsdp2", True)
    assert got["precision.mixed"] == "no"


def test_as_many_processes_as_devices_is_no_number():
    text = "distributed_type: MULTI_GPU\nmixed_precision: fp16\nnum_processes: -1\n"
    assert "parallel.world" not in values(text, "acc.yaml")


def test_an_adapter():
    got = values(
        '{"peft_type": "LORA", "r": 8, "lora_alpha": 16, "target_modules": ["q_proj"], "use_dora": true,'
        ' "base_model_name_or_path": "org/model", "modules_to_save": null}',
        "adapter_config.json",
    )
    assert got["adapter.kind"] == "dora"
    assert (got["adapter.rank"], got["adapter.alpha"], got["adapter.targets"]) == (8, 16.0, ("q_proj",))


def test_a_model():
    found = fragment(
        '{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,'
        ' "torch_dtype": "bfloat16", "tie_word_embeddings": true,'
        ' "quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": true}}',
        "config.json",
    )
    got = {path: value.value for path, value in found.values.items()}
    assert (got["model.type"], got["model.dtype"], got["model.head"]) == ("llama", "bfloat16", "causal-lm")
    assert (got["model.shape.layers"], got["model.shape.hidden"], got["model.shape.tied"]) == (2, 64, True)
    assert got["model.quantized"] == "bnb-4bit"
    assert got["model.config"]["hidden_size"] == 64
