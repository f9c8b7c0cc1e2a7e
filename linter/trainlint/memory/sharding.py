"""FSDP2 (fully_shard on every block and on the root): what gathering, resharding and reducing hold, and for how long.

One group is the parameters of one block; the root group is everything outside the blocks (embeddings, last norm, head).

* Before a group's forward: one flat gathered buffer, then the whole parameters copied out of it. In forward that
  buffer stays until the next group has copied out; in backward it goes at once, but the next group is gathered ahead.
* After a group's backward: its whole gradients are copied into one flat buffer of the reduce dtype, which stays until
the
  next group reduces; the gradient shard is what remains.
* The root is whole from the start of the backward to its very end, and so are its gradients: the usual peak.

Source: torch 2.13, torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py, _fsdp_collectives.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trainlint.memory.autograd import Tape
from trainlint.memory.graph import Parameter, Tensor

Group = Sequence[tuple[int, int]]
"""Elements and rows (first dimension) of each parameter of a group."""


class Sharding:
    """The life of gathered parameters and reduced gradients on one of `world` devices."""

    def __init__(
        self,
        tape: Tape,
        groups: Mapping[str, Group],
        world: int,
        compute: str,
        load: str,
        reduce: str,
        mixed: bool,
        reshard: bool,
    ) -> None:
        self.tape = tape
        self.groups = groups
        self.world = world
        self.compute = compute
        self.load = load
        self.reduce = reduce
        self.mixed = mixed
        self.reshard = reshard
        self.whole: dict[str, list[Tensor]] = {}
        self.ahead: dict[str, Tensor] = {}
        self.flat: Tensor | None = None
        self.reducing: Tensor | None = None
        self.shards: list[Tensor] = []
        self.order: list[str] = []
        self.keeps_inputs = 0
        self.kept: list[Tensor] = []

    def _label(self, label: str) -> None:
        self.tape.memory.label = label

    def _shard(self, group: str) -> int:
        """Elements of a shard: the first dimension is cut in `world` pieces, rounded up."""
        return sum(shard_elements(elements, rows, self.world) for elements, rows in self.groups[group])

    def _gather(self, group: str) -> Tensor:
        self._label("gathered weights")
        elements = self._shard(group)
        cast = self.tape.new(elements, self.compute) if self.mixed else None
        gathered = self.tape.new(elements * self.world, self.compute)
        del cast
        return gathered

    def _copy_out(self, group: str) -> None:
        self._label("gathered weights")
        self.whole[group] = [
            self.tape.new(shard_elements(elements, rows, self.world) * self.world, self.compute)
            for elements, rows in self.groups[group]
        ]

    def before_forward(self, group: str) -> None:
        """Gather and copy out; a local name holds the buffer of the group before until here."""
        if group not in self.whole:
            flat = self._gather(group)
            self._copy_out(group)
            self.flat = flat

    def after_forward(self, group: str) -> None:
        """Free the whole parameters, unless they are kept for the backward."""
        self.order.append(group)
        if self.reshard:
            self.whole.pop(group, None)
        if group == "root":
            self.flat = None

    def before_backward(self, group: str) -> None:
        """Gather again, and the group that comes next already."""
        if group not in self.whole:
            flat = self.ahead.pop(group, None) or self._gather(group)
            self._copy_out(group)
            del flat
        index = self.order.index(group)
        if index and self.order[index - 1] not in self.whole:
            self.ahead[self.order[index - 1]] = self._gather(self.order[index - 1])

    def after_backward(self, group: str, parameters: Sequence[Parameter]) -> None:
        """Reduce the group's gradients into its shard."""
        self.whole.pop(group, None)
        self.reducing = None
        trained = [parameter for parameter in parameters if parameter.trained]
        if not trained:
            return
        self._label("gradient reduction")
        elements = sum(shard_elements(p.elements, p.shape[0], self.world) for p in trained)
        self.reducing = self.tape.new(elements * self.world, self.reduce)
        last = trained[-1].gradient if group == "root" else None  # a loop variable of foreach_reduce still names it
        for parameter in trained:
            parameter.gradient = None
        self._label("gradients")
        reduced = self.tape.new(elements, self.reduce)
        del last
        self.shards.append(self.tape.new(elements, self.load) if self.load != self.reduce else reduced)


class FlatSharding(Sharding):
    """FSDP1: the parameters of a unit are one flat tensor, padded to the number of devices.

    The root stays whole from its forward on, over the optimizer's step too where nothing in it is trained. In backward
    the unit before is gathered ahead. Its gradients are concatenated, which stays named while they are cast to the
    reduce dtype and reduced. A frozen unit is told by a hook on its inputs when to reshard. Where reentrant
    checkpointing detached them, the hook keeps the input and its gradient alive until the end of the backward:
    measured peaks of LoRA and QLoRA grow by one more gradient a block. Source: torch 2.13,
    torch/distributed/fsdp/_runtime_utils.py (_register_post_backward_reshard_only_hook), _flat_param.py.
    """

    def _elements(self, group: str) -> int:
        total = sum(elements for elements, _ in self.groups[group])
        return -(-total // self.world) * self.world

    def _unshard(self, group: str) -> None:
        if group in self.whole:
            return
        self._label("gathered weights")
        elements = self._elements(group)
        cast = self.tape.new(elements // self.world, self.compute) if self.mixed else None
        self.whole[group] = [self.tape.new(elements, self.compute)]
        del cast

    def before_forward(self, group: str) -> None:
        """Gather the flat tensor."""
        self._unshard(group)

    def after_forward(self, group: str) -> None:
        """Free it, except the root's."""
        self.order.append(group)
        if self.reshard and group != "root":
            self.whole.pop(group, None)

    def before_backward(self, group: str) -> None:
        """Gather again, and the unit before ahead (backward_prefetch BACKWARD_PRE)."""
        self._unshard(group)
        index = self.order.index(group)
        if index:
            self._unshard(self.order[index - 1])

    def after_backward(self, group: str, parameters: Sequence[Parameter]) -> None:
        """Concatenate, cast and reduce; a unit without gradients is only freed, the root not even that."""
        trained = [parameter for parameter in parameters if parameter.trained]
        if self.keeps_inputs and group != "root":
            self._label("block inputs")
            self.kept += [self.tape.new(self.keeps_inputs, self.compute) for _ in ("input", "gradient")]
        if not trained:
            if group != "root":
                self.whole.pop(group, None)
            return
        self._label("gradient reduction")
        total = sum(parameter.elements for parameter in trained)
        total = -(-total // self.world) * self.world
        flat = self.tape.new(total, self.compute)
        for parameter in trained:
            parameter.gradient = None
        self.whole.pop(group, None)
        cast = self.tape.new(total, self.reduce) if self.reduce != self.compute else None
        self._label("gradients")
        shard = self.tape.new(total // self.world, self.reduce)
        del cast
        if self.reduce != self.load:
            reduced, shard = shard, self.tape.new(total // self.world, self.load)
            del reduced
        del flat
        self.shards.append(shard)


def shard_elements(elements: int, rows: int, world: int) -> int:
    """Elements that one of `world` devices holds of a parameter: its rows divided, rounded up."""
    return -(-rows // world) * (elements // rows)
