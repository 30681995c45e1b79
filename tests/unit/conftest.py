"""Fixtures of these tests."""

from __future__ import annotations

import pytest

import dala
from dala.gpu.compute import (
    buffer,
)


@pytest.fixture
def canvas():
    """A buffer whose contents show whether it was written."""
    return buffer([7.0, 7.0, 7.0])


@pytest.fixture
def refuses(canvas):
    """Assert a typed error, its message, and that nothing was written."""

    def check(error, builtin, message, call):
        with pytest.raises(error) as caught:
            call()
        assert isinstance(caught.value, dala.DalaError)
        assert isinstance(caught.value, builtin)
        assert str(caught.value) == message
        assert canvas.read_list() == [7.0, 7.0, 7.0]

    return check
