"""How much one kernel may hold. Text may come from a stranger: every growth has a ceiling."""

from __future__ import annotations

from typing import Final

#: Characters of source text.
MAX_SOURCE: Final = 65_536
#: Nesting of one expression or block, as the parser counts it.
MAX_DEPTH: Final = 150
#: Operations in one program, helpers written out.
MAX_VALUES: Final = 20_000
#: Kernels calling kernels calling kernels.
MAX_CALLS_DEEP: Final = 24
