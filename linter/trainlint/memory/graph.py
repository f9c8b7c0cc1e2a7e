"""Tensors that are only a number of bytes, and the graph that gradients go through.

A storage lives as long as somebody holds it (a local name, a saved tensor, a gradient buffer): tensors count themselves
out when Python drops them, so lifetimes are CPython's own, as in torch. All sizes are bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trainlint.memory.account import SIZES, Key, Memory

LEAF = 1 << 60
"""AccumulateGrad nodes come before all others: engine.cpp gives them the largest sequence number."""

PASS = 1
"""In a formula: the incoming gradient itself goes on to this input."""
VIEW = 2
"""In a formula: a view of the incoming gradient, in the input's shape, goes on."""

Allocation = tuple[int, str]
"""Elements and dtype of a tensor that a backward allocates."""
Entry = Allocation | int | None
"""What one input of an operation gets in the backward pass: an allocation, PASS, VIEW, or nothing."""
Formula = tuple[Entry, ...]
"""One entry for each input of the operation, as torch's derivatives.yaml has one line for each."""
Call = Callable[["Storage | None", "list[Storage]"], "Sequence[Storage | None]"]
"""A backward that a formula cannot describe: incoming gradient and saved tensors to the inputs' gradients.

It must hold no tensor itself, or checkpointing could not let go of it.
"""


class Tensor:
    """A storage of its own: `nbytes` of memory that are given back when nobody holds the object any more."""

    __slots__ = ("dtype", "elements", "key", "memory", "nbytes", "node")

    key: Key
    slot = 0
    parameter: Parameter | None = None

    def __init__(self, memory: Memory, elements: int, dtype: str) -> None:
        self.memory = memory
        self.elements = elements
        self.dtype = dtype
        self.node: Node | None = None
        self.nbytes = nbytes = (elements * SIZES[dtype] + 511) & -512
        memory.current = current = memory.current + nbytes
        if memory.register is not None:
            self.key = memory.register.add(memory.label, dtype, elements, nbytes)
        if current > memory.high:
            memory.high = current
            if memory.register is not None:
                memory.register.take(memory.phase)

    def __del__(self) -> None:
        memory = self.memory
        memory.current -= self.nbytes
        if memory.register is not None:
            memory.register.drop(self.key, self.elements, self.nbytes)


class View:
    """Another tensor on the storage of `owner`: holds it, and counts nothing."""

    __slots__ = ("dtype", "elements", "node", "owner", "parameter", "slot")

    def __init__(
        self, owner: Storage | None, elements: int, dtype: str, node: Node | None = None, slot: int = 0
    ) -> None:
        self.owner = owner
        self.elements = elements
        self.dtype = dtype
        self.node = node
        self.slot = slot
        self.parameter: Parameter | None = None


Storage = Tensor | View
"""Anything that an operation can take or return."""


class Parameter:
    """A leaf of the graph.

    `copies` says how many real parameters it stands for (layers that are not walked); `nbytes` is what its weight
    takes on the device, which for a quantized weight is not `elements` times a size.
    """

    __slots__ = (
        "copies",
        "dtype",
        "elements",
        "gradient",
        "kind",
        "name",
        "nbytes",
        "node",
        "optimized",
        "shape",
        "tensor",
        "trained",
    )

    def __init__(
        self, name: str, kind: str, elements: int, dtype: str, shape: tuple[int, ...], trained: bool, nbytes: int
    ) -> None:
        self.name = name
        self.kind = kind
        self.elements = elements
        self.dtype = dtype
        self.shape = shape
        self.trained = trained
        self.optimized = trained
        self.nbytes = nbytes
        self.copies = 1
        self.gradient: Storage | None = None
        self.node: Node | None = None
        if trained:
            self.node = Node(LEAF, "AccumulateGrad")
            self.node.parameter = self
        self.tensor = View(None, elements, dtype, self.node)
        self.tensor.parameter = self

    def release(self) -> None:
        """Untie the parameter from its graph, so that both go without the garbage collector."""
        if self.node is not None:
            self.node.parameter = None
        self.node = self.gradient = self.tensor.node = self.tensor.parameter = None


Edge = tuple["Node", int, int, str, Entry]
"""Producer, its output slot, elements and dtype of the input, and what the formula hands to it."""


class Node:
    """One operation of the graph: where gradients go, what is saved for that, what it allocates.

    `edges` are those of inputs with a graph only, except where `call` computes: it answers for every input.
    """

    __slots__ = (
        "before",
        "call",
        "dead",
        "edges",
        "frame",
        "gradient",
        "label",
        "name",
        "others",
        "parameter",
        "pending",
        "saved",
        "scratch",
        "sequence",
    )

    def __init__(
        self,
        sequence: int,
        name: str,
        saved: list[Storage] | None = None,
        edges: Sequence[Edge | None] = (),
        scratch: Sequence[Allocation] | None = None,
    ) -> None:
        self.sequence = sequence
        self.name = name
        self.saved = saved
        self.edges = edges
        self.scratch = scratch
        self.pending = 0
        self.gradient: Storage | None = None
        self.others: dict[int, Storage] | None = None
        self.before: Callable[[], None] | None = None
        self.call: Call | None = None
        self.frame: Frame | None = None
        self.parameter: Parameter | None = None
        self.dead = False
        self.label = ""


REPEATED = Node(0, "recomputed")
"""The node of whatever is computed again: it says that there is a graph, and nothing will run it."""


class Stop(Exception):  # noqa: N818  control flow, as torch's _StopRecomputationError
    """Checkpointing's early stop: everything that the backward asks for has been computed again."""


class Frame:
    """One checkpointed block: its inputs, the nodes that will want saved tensors, and how to run it again.

    `whole` asks for a graph of the second run too, where that holds tensors that nothing else does.
    """

    __slots__ = ("again", "inputs", "left", "nodes", "position", "recomputed", "whole")

    def __init__(self, inputs: list[Storage]) -> None:
        self.inputs = inputs
        self.again: Callable[[], None] | None = None
        self.nodes: list[Node] = []
        self.position = 0
        self.left = 0
        self.recomputed = False
        self.whole = False
