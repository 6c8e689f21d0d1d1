"""How the layers of an index grow: new ones take in others, and large ones are built meanwhile.

A new layer is made together with all layers that are not much larger. So layers grow geometrically,
and no change ever costs a rebuild of everything. Reading many layers costs more than reading one;
when that has cost as much as joining them would, they are joined. A layer of which little is left
is built anew, and gives back the memory of what has gone.

Building a large layer takes a second or more. Where others may not wait for that, there is somebody
who builds large layers meanwhile (`submit`); until one is there, the layers that it is to replace
are read.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from octopis.core.matching.layer import Layer, cut, prepared_layer, terms_in
from octopis.core.matching.lists import Member

SHRINK = 4
"""What is built anew once fewer than one in so many of its members are left."""

_GROWTH = 2
"""A new layer takes in every layer at most so many times its size."""

_AT_ONCE_MAX = 1_000
"""Terms of a layer that is built at once also where others wait: that takes about 10 ms."""

_JOINED_MAX = 50_000
"""Terms of a layer that is built meanwhile: larger ones would hold others up now and then."""

_READ_MEMBERS = 10
"""Members that can be built anew at about the cost of reading one more layer."""


class Built(Protocol):
    """A layer that somebody is building, as `concurrent.futures.Future` is."""

    def done(self) -> bool:
        """Tell whether it is there, or cannot be."""

    def result(self) -> Layer:
        """Return it, or raise what has gone wrong."""


Submit = Callable[[Callable[[], Layer]], Built]
"""Has something done meanwhile, as an Executor's `submit` does."""


@dataclass(frozen=True, slots=True)
class _Join:
    """Layers that are being joined, and what becomes of them."""

    layers: list[Layer]
    members: list[Member]
    result: Built


class Layers:
    """The layers of one index, whose members have numbers: `members` has them by these."""

    def __init__(self, submit: Submit | None) -> None:
        self._submit = submit
        self._extra_reads = 0
        self.begin_anew([])

    def begin_anew(self, members: list[Member | None]) -> None:
        """Forget all layers: numbers mean other members now."""
        self._members = members
        self._layers: list[Layer] = []
        self._layer_of: list[Layer | None] = []  # by numbers; as far as any was in a layer
        self._join: _Join | None = None  # what is being built has numbers of before

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._layers)

    def __len__(self) -> int:
        return len(self._layers)

    def builds_at_once(self, terms: int) -> bool:
        """Tell whether so many terms are indexed at once, and not meanwhile."""
        return self._submit is None or terms <= _AT_ONCE_MAX

    def remove(self, number: int) -> bool:
        """Take a member out; False where it is in no layer."""
        layer = self._layer_of[number] if number < len(self._layer_of) else None
        if layer is None:
            return False
        self._layer_of[number] = None
        layer.remove(number)
        if not layer.size:
            self._layers.remove(layer)
        return True

    def take_in_joined(self) -> None:
        """Read the layer that was built meanwhile, where it is there."""
        if self._join is not None and self._join.result.done():
            self._end_join(self._join)

    def shrink(self) -> None:
        """Build those layers anew of which little is left."""
        for layer in self._idle():
            if layer.size * SHRINK < len(layer.members) and layer in self._layers:
                if self.builds_at_once(layer.size):
                    self._layers.remove(layer)
                    self.build(self._left_in(layer))
                elif self._join is None:
                    self._begin_join([layer])

    def join_if_read_often(self, count: int) -> None:
        """Note that all are read once more, and join them where that costs less by now."""
        if len(self._layers) > 1:
            self._extra_reads += len(self._layers) - 1
            if self._extra_reads * _READ_MEMBERS > count:
                self.build([])
                self._extra_reads = 0

    def build(self, members: list[Member]) -> None:
        """Make a layer of `members` and all layers not much larger (of all, if there are none)."""
        joining_all = not members
        joined: list[Layer] = []
        size, terms = len(members), terms_in(members)
        for layer in sorted(self._idle(), key=lambda layer: layer.size):
            if not joining_all and layer.size > _GROWTH * size:
                break
            if self._submit is not None and terms + layer.terms > _JOINED_MAX:
                break
            joined.append(layer)
            size += layer.size
            terms += layer.terms
        if self._submit is not None and terms > _AT_ONCE_MAX:
            joined += map(self._add_layer, cut(members, _AT_ONCE_MAX))
            if self._join is None and len(joined) > 1:
                self._begin_join(joined)
            return
        if joining_all and len(joined) < 2:
            return
        for layer in joined:
            self._layers.remove(layer)
            members += self._left_in(layer)
        if members:
            self._add_layer(members)

    def _idle(self) -> list[Layer]:
        """Return the layers that nobody is joining."""
        busy = [] if self._join is None else self._join.layers
        return [layer for layer in self._layers if layer not in busy]

    def _add_layer(self, members: list[Member]) -> Layer:
        layer = Layer(members)
        self._layers.append(layer)
        self._layer_of += [None] * (len(self._members) - len(self._layer_of))
        for member in members:
            self._layer_of[member.number] = layer
        return layer

    def _begin_join(self, layers: list[Layer]) -> None:
        assert self._submit is not None, "nobody builds layers meanwhile"
        members = [member for layer in layers for member in self._left_in(layer)]
        self._join = _Join(layers, members, self._submit(partial(prepared_layer, members)))

    def _end_join(self, join: _Join) -> None:
        """Let the new layer take the place of those that it was made of."""
        self._join = None
        layer = join.result.result()
        for old in join.layers:
            if old in self._layers:  # else all its members have gone meanwhile
                self._layers.remove(old)
        self._layers.append(layer)
        gone = []
        for member in join.members:
            if self._members[member.number] is member:
                self._layer_of[member.number] = layer
            else:
                gone.append(member.number)
        if gone:
            layer.remove_all(gone)

    def _left_in(self, layer: Layer) -> list[Member]:
        return [member for member in layer.members if self._members[member.number] is member]
