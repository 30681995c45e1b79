"""Operations on the CPU. Each module registers its code with ``@implements``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dala.gpu.compute.engines.registry import Implementations

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.engine import CPUEngine

IMPLEMENTATIONS: Final[Implementations[CPUEngine]] = Implementations(__name__)
implements: Final = IMPLEMENTATIONS.register
