"""A variable for the environment whose name nothing reads, one slip from one that is read."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from trainlint.api import Found, RunView, Value, rule

READ = (
    "CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_ORDER", "CUDA_DEVICE_MAX_CONNECTIONS", "NCCL_DEBUG",
    "NCCL_P2P_DISABLE", "NCCL_IB_DISABLE", "NCCL_SHM_DISABLE", "NCCL_SOCKET_IFNAME", "NCCL_IB_TIMEOUT",
    "NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_BLOCKING_WAIT", "TORCH_NCCL_BLOCKING_WAIT",
    "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_ENABLE_MPS_FALLBACK", "TOKENIZERS_PARALLELISM",
    "OMP_NUM_THREADS", "WANDB_DISABLED", "WANDB_PROJECT", "WANDB_MODE", "WANDB_API_KEY", "HF_HUB_OFFLINE",
    "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE", "HF_HUB_ENABLE_HF_TRANSFER", "TRANSFORMERS_CACHE", "HF_HOME",
)  # fmt: skip
"""Variables that CUDA, NCCL, torch, tokenizers, wandb and the hub's libraries read."""
OTHERS = ("CUDA_AVAILABLE_DEVICES", "CUDA_VISIBLE_GPUS", "CUDA_VISIBLE_DEVICE", "CUDA_DEVICES")
"""Names that people write for the first of them, further off than a slip."""
ALIKE = 0.93
"""How alike two names are that differ by one letter or two neighbours."""


@rule(severity="warning")
def check(view: RunView) -> Iterator[Found]:
    env = view.run.launch.env
    values = env.value if env is not None and isinstance(env.value, Mapping) else {}
    for name, value in values.items():
        if not isinstance(name, str) or not isinstance(value, Value) or value.place is None or name in READ:
            continue
        likely = [word for word in READ if abs(len(word) - len(name)) < 2 and word[0] == name[:1]]
        close = ["CUDA_VISIBLE_DEVICES"] if name in OTHERS else get_close_matches(name, likely, 1, ALIKE)
        if close and name.isupper() and not _used(view, name):
            yield Found(
                at=value,
                message=f"`{name}` is read by nothing, `{close[0]}` is",
                help=f"write `{close[0]}`",
            )


def _used(view: RunView, name: str) -> bool:
    """Whether a script reads the variable itself."""
    texts = [fragment.document.text for fragment in view.fragments]
    return any(f"${name}" in text or f"${{{name}" in text for text in texts)
