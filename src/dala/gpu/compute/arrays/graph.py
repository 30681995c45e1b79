"""Expressions that are not computed yet: a graph of nodes over buffers.

A node is one operation. A *leaf* is a buffer with memory; it keeps its buffer alive. An expression
sees its operands' values at the time it was written: :func:`settle` computes all expressions that
read a buffer before it is written or freed. For that, the memory refers to its leaf, and every node
to the nodes that use it, all weakly: a result that is dropped is never computed.

``LOCK`` guards the graph and is held while expressions are computed. Finalizers must not take it:
its holder may wait for the thread that runs them.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from dala import forks
from dala.gpu.compute.engines.base import Engine, Storage
from dala.gpu.compute.lang.ir import Type

if TYPE_CHECKING:
    from dala.gpu.compute.buffer import Buffer

#: The most operations in an expression; its operands are computed before it grows beyond.
MAX_NODES: Final = 64

LOCK = forks.rlock()


class Number(NamedTuple):
    """A number in an expression, passed to its kernel as a parameter."""

    type: Type
    value: int | float


@dataclass(eq=False)
class Expression:
    """One operation of an expression, or a leaf.

    ``template`` is its code in the kernel language, with ``{0}`` for the first operand.
    """

    engine: Engine
    shape: tuple[int, ...]
    dtype: str
    label: str
    template: str
    args: tuple[Expression | Number, ...]
    #: The number of operations, and the leaves of the kernel that would compute it.
    size: int
    leaves: frozenset[int]
    #: The buffer with the values; None until they are computed.
    buffer: Buffer | None = None
    #: The user's buffer that gets the values; None or dead if there is none.
    owner: weakref.ref[Buffer] | None = None
    #: True if a result that uses it was computed, with this operation fused into it.
    used: bool = False
    #: Nodes that use it.
    users: list[weakref.ref[Expression]] = field(default_factory=list)
    #: Increases from operands to results.
    serial: int = field(default_factory=partial(next, count()))

    def __post_init__(self) -> None:
        self.leaves = self.leaves or frozenset({self.serial})
        if self.buffer is None:
            here = weakref.ref(self)
            for operand in set(self.operands):
                operand.add_user(here)

    def add_user(self, user: weakref.ref[Expression]) -> None:
        """Remember a node that uses this one; forget dead ones now and then."""
        users = self.users
        if len(users) >= 8 and len(users) & (len(users) - 1) == 0:
            self.users = users = [u for u in users if u() is not None]
        users.append(user)

    @property
    def operands(self) -> Iterator[Expression]:
        """The operands that are nodes."""
        return (a for a in self.args if isinstance(a, Expression))

    def finish(self, buffer: Buffer) -> None:
        """Become the leaf of a buffer that has the values."""
        self.buffer = buffer
        self.args, self.template, self.owner, self.size = (), "", None, 0
        self.leaves = frozenset({self.serial})
        buffer.storage(self.label).reader = weakref.ref(self)


Operand: TypeAlias = Expression | Number


def joined(operands: list[Expression], shape: tuple[int, ...]) -> frozenset[int]:
    """Return the inputs of a kernel of this shape: smaller operands are computed before it."""
    found: frozenset[int] = frozenset()
    for a in operands:
        found |= a.leaves if a.shape == shape else {a.serial}
    return found


def leaf(b: Buffer, call: str, argument: str) -> Expression:
    """Return the node of a buffer: its expression, or a leaf."""
    if b.node is not None:
        return b.node
    storage = b.storage(call, argument)
    found: Expression | None = None if storage.reader is None else storage.reader()
    if found is not None and found.shape != b.shape:
        settle(storage)  # another shape of the same memory
        found = None
    if found is None:
        found = Expression(b.engine, b.shape, b.dtype, "buffer", "", (), 0, frozenset(), b)
        storage.reader = weakref.ref(found)
    return found


def is_shared(node: Expression) -> bool:
    """Return True if a leaf's memory can be written without our knowledge."""
    if node.buffer is None:
        return False
    storage = node.buffer.storage(node.label)
    return storage.foreign or (storage.exposed is not None and storage.exposed() is not None)


def readers(storage: Storage) -> list[Expression]:
    """Return the nodes of live results that read a storage, operands first."""
    first: Expression | None = None if storage.reader is None else storage.reader()
    found: dict[int, Expression] = {}
    seen: set[int] = set()
    todo = [first] if first is not None else []
    while todo:
        node = todo.pop()
        if node.serial in seen:
            continue
        seen.add(node.serial)
        if node.buffer is not None and node is not first:
            continue  # computed, and what uses it reads its buffer
        if node.owner is not None and node.owner() is not None:
            found[node.serial] = node
        todo.extend(n for n in (user() for user in node.users) if n is not None)
    return [found[serial] for serial in sorted(found)]


def settle(storage: Storage) -> None:
    """Compute the expressions that read a storage. Call it before it is written or released."""
    from dala.gpu.compute.arrays.evaluate import compute

    with LOCK:
        for node in readers(storage):
            compute(node)
        storage.reader = None
