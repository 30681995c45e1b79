"""Decoded pictures that wait in a queue count against the memory limits."""

from __future__ import annotations

import pytest

import dala
from dala import resources
from dala.media import video
from tests.media.video.clips import encode, numbered


def counted():
    return resources.snapshot().get("decoder", {"bytes": 0})["bytes"]


def test_pictures_of_the_queue(tmp_path):
    path = tmp_path / "a.mkv"
    encode(path, numbered(6, (48, 64)), codec="ffv1")
    before = counted()
    with video.open(path, device="cpu") as frames:
        assert next(iter(frames)).shape[:2] == (48, 64)
        assert counted() - before >= 4 * 48 * 64 * 3 // 2
    assert counted() == before


def test_too_many_are_refused_before_they_are_decoded(tmp_path):
    path = tmp_path / "a.mkv"
    encode(path, numbered(2, (480, 640)), codec="ffv1")
    before = counted()
    with dala.limits(memory=16 * 480 * 640 + 1000) as limits:  # what opening it may need
        assert limits.memory is not None
        with (
            video.open(path, device="cpu", queue=64) as frames,
            pytest.raises(dala.MemoryLimitExceeded, match=r"needs .* of memory, and the block of"),
        ):
            next(iter(frames))
    assert counted() == before
