"""Operation code of the CPU engine. A module registers its functions with ``@implements``."""

from typing import Final

from dala.gpu.compute.engines.registry import Implementations

IMPLEMENTATIONS: Final = Implementations(__name__)
implements: Final = IMPLEMENTATIONS.register
