"""The framework-neutral description of a training run: the vocabulary that formats fill and rules read.

Every field is a `Value` or None, and None means unknown. The fields' kinds, units and meanings are data
(`trainlint.run.vocabulary`), so that paths in rules and run files are checked against them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from trainlint.run import declare
from trainlint.run.declare import Group
from trainlint.run.value import Value

Text = Value[str] | None
Count = Value[int] | None
Number = Value[float] | None
Flag = Value[bool] | None
Texts = Value[tuple[str, ...]] | None
Anything = Value[object] | None


NOTHING: Mapping[str, Any] = MappingProxyType({})
DTYPES = ("float32", "bfloat16", "float16", "float8", "none")


class Shape(Group):
    """The model's dimensions, from its config.json."""

    layers: Count = declare.count("blocks")
    hidden: Count = declare.count("width of the residual stream")
    heads: Count = declare.count("query heads")
    kv_heads: Count = declare.count("key and value heads")
    head_dim: Count = declare.count("width of a head")
    ffn: Count = declare.count("width of the feed-forward layer")
    vocab: Count = declare.count("vocabulary size")
    tied: Flag = declare.flag("input and output embeddings are one tensor")
    positions: Count = declare.count("longest sequence the positions allow", "token")
    sliding_window: Count = declare.count("attention window", "token")
    experts: Count = declare.count("experts per layer")
    experts_per_token: Count = declare.count("experts a token visits")
    rope_scaling: Anything = declare.anything("how positions are stretched beyond those trained")


class Model(Group):
    """What is trained."""

    id: Text = declare.text("Hugging Face id, alias or local path as written")
    config: Anything = declare.anything("the model's config.json, as a plain mapping")
    type: Text = declare.text("model_type of the architecture")
    parameters: Count = declare.count("parameters of the model, without adapters", "parameter")
    checkpoint_bytes: Count = declare.count("size of the weight files", "byte")
    dtype: Text = declare.text("dtype the checkpoint is stored in", *DTYPES)
    quantized: Text = declare.text("how the checkpoint is already quantized: bnb-4bit, gptq, awq, fp8, gguf, mlx-4bit")
    head: Text = declare.text(
        "what the model predicts",
        "causal-lm",
        "classification",
        "seq2seq",
        "masked-lm",
        "image-classification",
        "speech-seq2seq",
    )
    chat_template: Text = declare.text("text of the chat template, where it is at hand")
    shape: Shape = Shape()


class Precision(Group):
    """Number formats."""

    weights: Text = declare.text("dtype the weights are held in", *DTYPES)
    compute: Text = declare.text("dtype the matrix products run in", *DTYPES)
    autocast: Flag = declare.flag("autocast is on")
    gradients: Text = declare.text("dtype of the gradients where the engine decides", *DTYPES)
    master: Text = declare.text("dtype of a second, full copy of the weights", *DTYPES)
    moments: Text = declare.text("dtype of the optimizer's moments where the engine decides", *DTYPES)
    grad_scaler: Flag = declare.flag("the loss is scaled")
    fp16: Flag = declare.flag("fp16 mixed precision is asked for")
    bf16: Flag = declare.flag("bf16 mixed precision is asked for")
    fp8: Flag = declare.flag("fp8 matrix products are asked for")
    tf32: Flag = declare.flag("TF32 matrix products are asked for")
    mixed: Text = declare.text("mixed precision as the launcher is told", "no", "fp16", "bf16", "fp8")
    full_eval: Flag = declare.flag("the model is cast down for evaluation")
    embeddings: Text = declare.text(
        "dtype of embeddings, output head and norms where it is not that of the weights", *DTYPES
    )


class Adapter(Group):
    """Low-rank and other adapters on a frozen base."""

    kind: Text = declare.text("lora, dora, ia3, …")
    rank: Count = declare.count("rank of the update")
    alpha: Number = declare.number("scale of the update, over the rank")
    dropout: Number = declare.number("dropout on the adapter's input")
    targets: Texts = declare.texts("modules adapted: attention, all-linear, qv, or names")
    exclude: Texts = declare.texts("modules left out")
    layers: Count = declare.count("blocks that train, counted from the end")
    dtype: Text = declare.text("dtype of the adapter's weights", *DTYPES)
    modules_to_save: Texts = declare.texts("modules trained in full beside the adapter")
    rslora: Flag = declare.flag("the scale is alpha over the root of the rank")
    bias: Text = declare.text("which biases train")
    base: Text = declare.text("the model the adapter was made for")


class Quantization(Group):
    """How the frozen base is stored."""

    bits: Count = declare.count("bits per weight")
    type: Text = declare.text("nf4, fp4, int8, gptq, awq, …")
    double: Flag = declare.flag("the scales are quantized too")
    storage: Text = declare.text("dtype the packed weights are kept in")
    compute: Text = declare.text("dtype weights are expanded to", *DTYPES)
    prepared: Flag = declare.flag("prepare_model_for_kbit_training ran: what is not quantized became float32")
    experts: Flag = declare.flag("experts that are no linear layers are quantized too")


class Batch(Group):
    """How many samples at once."""

    micro: Count = declare.count("samples per device and forward pass", "sample")
    accumulation: Count = declare.count("forward passes per optimizer step")
    eval: Count = declare.count("samples per device in evaluation", "sample")
    effective: Count = declare.count("samples per optimizer step over all devices", "sample")
    auto: Flag = declare.flag("the framework looks for a size that fits")
    generations: Count = declare.count("completions sampled for one prompt")
    generation_steps: Count = declare.count("forward passes that one round of sampling feeds")
    generation: Count = declare.count("completions of one round of sampling, over all devices", "sample")


class Length(Group):
    """How long a sample may be."""

    max: Count = declare.count("longest sample kept", "token")
    truncates: Flag = declare.flag("longer samples are cut, not dropped")
    eval: Count = declare.count("longest sample in evaluation", "token")
    prompt: Count = declare.count("longest prompt", "token")
    completion: Count = declare.count("longest completion", "token")
    packing: Flag = declare.flag("samples are put together to full length")
    padding_free: Flag = declare.flag("samples are laid end to end without padding")
    padded: Flag = declare.flag("batches carry a padding mask")
    pad_to_max: Flag = declare.flag("every sample is padded to the longest allowed")


class Checkpointing(Group):
    """Activation checkpointing."""

    kind: Text = declare.text("which activations are recomputed", "none", "full", "selective")
    reentrant: Flag = declare.flag("the re-entrant implementation")
    every: Count = declare.count("every how many blocks")


class Evaluation(Group):
    """Evaluation during training."""

    batch: Count = declare.count("samples per device", "sample")
    steps: Count = declare.count("batches whose outputs are gathered", "step")
    gather_logits: Flag = declare.flag("logits of all batches are kept on the device")
    only: Flag = declare.flag("nothing is trained")
    strategy: Text = declare.text("when it runs", "no", "steps", "epoch")
    every: Number = declare.number("steps between two evaluations", "step")
    accumulation: Count = declare.count("batches after which outputs move to the host", "step")


class Optimizer(Group):
    """The optimizer."""

    name: Text = declare.text("Hugging Face `optim` name")
    lr: Number = declare.number("learning rate")
    weight_decay: Number = declare.number("weight decay")
    beta1: Number = declare.number("decay of the first moment")
    beta2: Number = declare.number("decay of the second moment")
    epsilon: Number = declare.number("added to the denominator")
    momentum: Number = declare.number("momentum of SGD")
    foreach: Flag = declare.flag("the multi-tensor implementation")
    in_backward: Flag = declare.flag("steps inside the backward pass, gradients freed one by one")


class Schedule(Group):
    """Learning-rate schedule and length of the training."""

    name: Text = declare.text("lr_scheduler_type")
    warmup_steps: Number = declare.number("steps of warmup (below 1: a share, where the framework allows it)", "step")
    warmup_ratio: Number = declare.number("share of the steps that warm up")
    epochs: Number = declare.number("passes over the data", "epoch")
    max_steps: Count = declare.count("optimizer steps", "step")
    total_steps: Count = declare.count("optimizer steps of the whole run, at most", "step")


class Checkpoint(Group):
    """Saving the model."""

    strategy: Text = declare.text("when it is saved", "no", "steps", "epoch", "best")
    every: Number = declare.number("steps between two checkpoints", "step")
    best_at_end: Flag = declare.flag("the best checkpoint is loaded at the end")
    metric: Text = declare.text("metric for the best checkpoint")
    greater_is_better: Flag = declare.flag("a larger metric is a better one")
    total_limit: Count = declare.count("checkpoints kept")
    only_model: Flag = declare.flag("optimizer, scheduler and random states are left out")
    full_state: Flag = declare.flag("the whole state dict is gathered on one rank")
    output: Text = declare.text("folder of the checkpoints")
    bytes: Count = declare.count("size of one checkpoint with the training's state", "byte")


class Sharding(Group):
    """How states are spread over devices."""

    kind: Text = declare.text("engine", "none", "zero0", "zero1", "zero2", "zero3", "fsdp", "fsdp2", "device-map")
    reshard_after_forward: Flag = declare.flag("gathered weights are freed after the forward pass")
    strategy: Text = declare.text("FSDP sharding strategy")
    use_orig_params: Flag = declare.flag("FSDP1 keeps the original parameters visible")
    wrap: Text = declare.text("how modules become units: block, none, peft")
    wrap_classes: Texts = declare.texts("classes of the modules that become units")
    reduce_dtype: Text = declare.text("dtype gradients are reduced in", *DTYPES)
    offload_optimizer: Text = declare.text("where optimizer states live: cpu, nvme", "none", "cpu", "nvme")
    offload_parameters: Text = declare.text("where parameters live: cpu, nvme", "none", "cpu", "nvme")
    reduce_bucket: Number = declare.number("gradients reduced at once", "element")
    allgather_bucket: Number = declare.number("parameters gathered at once", "element")
    prefetch_bucket: Number = declare.number("parameters fetched ahead", "element")
    sub_group: Number = declare.number("parameters stepped at once", "element")
    overlap_comm: Flag = declare.flag("two buckets alternate")
    bucket_mb: Number = declare.number("size of a DDP bucket in MiB")
    bucket_view: Flag = declare.flag("gradients are views into the buckets")
    find_unused: Flag = declare.flag("DDP looks for parameters that get no gradient")


class Parallel(Group):
    """Degrees of parallelism."""

    data: Count = declare.count("replicas or shards of the data")
    tensor: Count = declare.count("devices a matrix is split over")
    pipeline: Count = declare.count("stages the blocks are split over")
    context: Count = declare.count("devices a sequence is split over")
    expert: Count = declare.count("devices the experts are split over")
    world: Count = declare.count("processes in all")
    per_node: Count = declare.count("processes on one machine")
    nodes: Count = declare.count("machines")


class Device(Group):
    """What it runs on."""

    name: Text = declare.text("device as written")
    count: Count = declare.count("devices")
    memory: Count = declare.count("memory of one device, as the driver reports it", "byte")
    memory_high: Count = declare.count("memory of the largest device of that name", "byte")
    claimed_memory: Count = declare.count("memory of one device as somebody states it, true or not", "byte")
    host_memory: Count = declare.count("RAM of the machine", "byte")
    unified: Flag = declare.flag("device and host share one memory")
    capability: Number = declare.number("CUDA compute capability")
    limit: Anything = declare.anything("memory limits per device that the config sets")
    cpu_only: Flag = declare.flag("the config trains on the CPU")


class Launch(Group):
    """How the run is started, and what its job asks of one machine."""

    command: Text = declare.text("command that starts the training, as written")
    image: Text = declare.text("container image")
    accelerated: Flag = declare.flag("the job asks for devices at all")
    gpus: Count = declare.count("devices a machine gets")
    gpus_requested: Count = declare.count("devices a machine requests, where requests stand beside limits")
    cpus: Number = declare.number("processor cores")
    memory: Number = declare.number("RAM the job asks for", "byte")
    shm: Flag = declare.flag("shared memory was given to the container, or is the host's")
    shm_memory: Count = declare.count("largest size of the shared memory", "byte")
    disk: Count = declare.count("local disk", "byte")
    time: Number = declare.number("seconds after which the job is ended")
    env: Anything = declare.anything("environment variables, by name, each a value with its place")


class Data(Group):
    """The training data."""

    rows: Count = declare.count("samples", "sample")
    tokens: Mapping[str, Value[int]] = NOTHING
    files: Texts = declare.texts("data files that were found")
    names: Texts = declare.texts("data sets named")
    registered: Texts = declare.texts("names in the list of data sets that the config's names are looked up in")
    estimated: Flag = declare.flag("lengths were estimated from characters")
    chat: Flag = declare.flag("the data are conversations")
    validation: Number = declare.number("share or number of samples held back")
    limit: Count = declare.count("largest number of samples taken of each data set", "sample")
    streaming: Flag = declare.flag("samples are read one by one, their number is not known")
    workers: Count = declare.count("processes of each device's loader")
    preprocessing: Count = declare.count("processes that prepare the data before training")


class TrainingRun(Group):
    """One run: every value known of it, with its provenance.

    `files` are those it was read from, the root first. `possible` holds, by path, the values between which something
    unknown decides (mostly a version; each value's `note` says when it holds): such a path is None in its group.
    """

    root: str = ""
    root_format: str = ""
    files: tuple[str, ...] = ()
    framework: Text = declare.text("the trainer that runs it")
    method: Text = declare.text("what trains", "full", "lora", "qlora", "freeze")
    objective: Text = declare.text("sft, pretrain, dpo, kto, orpo, grpo, ppo, reward, …")
    reference: Text = declare.text(
        "the second model of preference methods", "none", "copy", "adapter-off", "precomputed"
    )
    attention: Text = declare.text("attention kernel", "eager", "sdpa", "flash", "flex", "xformers")
    loss: Text = declare.text("full · chunked · fused, or by name")
    kernels: Text = declare.text("fused kernels", "none", "liger", "unsloth")
    activation_offload: Flag = declare.flag("saved activations move to the host")
    compile: Flag = declare.flag("torch.compile is on")
    clip: Number = declare.number("largest gradient norm")
    zero_grad: Text = declare.text("gradients between steps", "to-none", "to-zero")
    seed: Count = declare.count("random seed")
    profile: Text = declare.text("settings profile", "default", "strict", "teaching")
    model: Model = Model()
    precision: Precision = Precision()
    adapter: Adapter = Adapter()
    quantization: Quantization = Quantization()
    batch: Batch = Batch()
    length: Length = Length()
    checkpointing: Checkpointing = Checkpointing()
    evaluation: Evaluation = Evaluation()
    optimizer: Optimizer = Optimizer()
    schedule: Schedule = Schedule()
    checkpoint: Checkpoint = Checkpoint()
    sharding: Sharding = Sharding()
    parallel: Parallel = Parallel()
    device: Device = Device()
    data: Data = Data()
    launch: Launch = Launch()
    versions: Mapping[str, Value[str]] = NOTHING
    possible: Mapping[str, tuple[Value[object], ...]] = NOTHING
    values: Mapping[str, Value[object]] = NOTHING

    def get(self, path: str) -> Value[object] | None:
        """The value at a dotted path, or None where it is unknown."""
        return self.values.get(path)
