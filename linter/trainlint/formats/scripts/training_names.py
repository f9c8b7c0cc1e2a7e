"""Names in Python by which a script trains: configs, trainers, optimizers, and what else says something of a run."""

CONFIGS = frozenset((
    "TrainingArguments", "Seq2SeqTrainingArguments", "SentenceTransformerTrainingArguments", "SFTConfig",
    "DPOConfig", "GRPOConfig", "KTOConfig", "ORPOConfig", "CPOConfig", "RewardConfig", "PPOConfig",
    "RLOOConfig", "OnlineDPOConfig", "BCOConfig", "PRMConfig", "GKDConfig", "XPOConfig", "NashMDConfig",
))  # fmt: skip
"""Classes of transformers and TRL whose keywords are the keys of a trainer's config."""

TRAINERS = frozenset((
    "Trainer", "Seq2SeqTrainer", "SentenceTransformerTrainer", "SFTTrainer", "DPOTrainer", "GRPOTrainer",
    "KTOTrainer", "ORPOTrainer", "CPOTrainer", "RewardTrainer", "PPOTrainer", "RLOOTrainer", "OnlineDPOTrainer",
    "BCOTrainer", "PRMTrainer", "GKDTrainer", "XPOTrainer", "NashMDTrainer",
))  # fmt: skip
"""Classes that train."""

OPTIMIZERS = frozenset((
    "AdamW", "Adam", "SGD", "Adafactor", "RMSprop", "Adagrad", "NAdam", "RAdam", "Lion", "AdamW8bit",
    "Adam8bit", "PagedAdamW", "PagedAdamW8bit", "PagedAdamW32bit", "PagedAdam8bit", "Lion8bit", "PagedLion8bit",
    "SGD8bit", "AdEMAMix", "Muon", "DeepSpeedCPUAdam", "FusedAdam",
))  # fmt: skip
"""Optimizers of torch, bitsandbytes, transformers and DeepSpeed."""

KNOWN = CONFIGS | TRAINERS | OPTIMIZERS | frozenset((
    "from_pretrained", "from_config", "get_peft_model", "LoraConfig", "AdaLoraConfig", "IA3Config", "PeftModel",
    "BitsAndBytesConfig", "prepare_model_for_kbit_training", "prepare_model_for_int8_training",
    "gradient_checkpointing_enable", "gradient_checkpointing_disable", "enable_input_require_grads",
    "requires_grad_", "Accelerator", "GradScaler", "ShardedGradScaler", "autocast", "DataLoader", "compile",
    "half", "bfloat16", "to", "empty_cache", "max_memory_allocated", "reset_peak_memory_stats",
    "set_z3_leaf_modules", "DataCollatorForLanguageModeling",
    "DataCollatorForSeq2Seq", "DataCollatorForCompletionOnlyLM", "parse_args_into_dataclasses",
    "parse_args_and_config", "parse_dict", "HfArgumentParser", "TrlParser", "initialize",
    "DistributedDataParallel", "DDP", "DataParallel", "FullyShardedDataParallel", "FSDP", "fully_shard",
    "DeepSpeedPlugin", "FullyShardedDataParallelPlugin", "fit", "Fabric", "load_dataset", "manual_seed",
    "set_seed", "train", "generate", "pipeline", "merge_and_unload", "save_pretrained",
    "resize_token_embeddings", "add_tokens", "add_special_tokens", "set_adapter", "enable_adapters",
))  # fmt: skip
"""Calls that are noted; others say nothing of a run."""
