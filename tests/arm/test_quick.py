"""What tells most about ARM in two minutes; `make test-arm` runs the rest."""

from __future__ import annotations

import pytest

from tests.arm import root
from tests.arm.pieces import output, pieces, run


@pytest.mark.parametrize("piece", [p for p in pieces() if p.quick], ids=lambda piece: piece.name)
def test_piece(piece):
    if not root.is_ready():
        pytest.skip(
            "no ARM root in build/arm; `python -m tests.arm --setup` makes it, or says why not"
        )
    result = run(piece)
    assert not result.failed, output(piece)[-6000:]
    if not result.passed:
        pytest.skip(", ".join(result.skipped))
