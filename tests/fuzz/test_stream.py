"""Mutated command streams: check() agrees with decode(), and valid ones draw within bounds."""

from __future__ import annotations

import pytest

from dala.errors import ProtocolError
from dala.gpu import command, protocol
from tests.fuzz.targets.streams import Checked, Streams, verdict


def fuzz(seed: int, count: int) -> tuple[int, int]:
    target = Streams()
    found = [target.check(target.input(seed, n), twice=False) for n in range(count)]
    return found.count("read"), found.count("refused")


@pytest.mark.parametrize("seed", range(3))
def test_mutated_streams(seed: int) -> None:
    good, bad = fuzz(seed, 1500)
    assert good > 300
    assert bad > 300


@pytest.mark.long
def test_million_mutated_streams() -> None:
    counts = [fuzz(seed, 20_000) for seed in range(100, 150)]
    assert all(good > 4_000 and bad > 4_000 for good, bad in counts)


def test_batches_that_are_too_deep_or_too_large() -> None:
    canvas = Checked(4, 4)
    data = command.encode_clear("red")
    for depth in range(1, 20):
        data = command.encode_batch([data])
        wanted = verdict(data)
        assert (wanted is None) == (depth <= protocol.MAX_DEPTH)
        if wanted is None:
            canvas.check(data)
        else:
            with pytest.raises(
                ProtocolError, match="batches are nested more than 16 deep"
            ) as caught:
                canvas.check(data)
            assert caught.value.offset == wanted.offset
    for data in (
        b"\x15\xff\xff\xff\xff\x05",
        b"\x15\x02\0\0\0\x05",
        b"\x15\x01\0\0",
        b"\x15\x01\0\0\0",
    ):
        with pytest.raises(ProtocolError) as caught:
            canvas.check(data)
        assert str(caught.value) == str(verdict(data))


def test_wrong_lengths_of_pixels_and_text() -> None:
    canvas = Checked(4, 4)
    big = (2**32 - 1).to_bytes(4, "little")
    for head in (b"\x07", b"\x17"):
        for size in (
            big + big,
            b"\0\0\0\x80\0\0\0\x80",
            b"\x01\0\0\0\x02\0\0\0",
            big + b"\0\0\0\0",
        ):
            data = head + bytes(8) + size + bytes(4)
            wanted = verdict(data)
            if wanted is None:
                canvas.check(data)
                continue
            with pytest.raises(ProtocolError) as caught:
                canvas.check(data)
            assert str(caught.value) == str(wanted)


@pytest.mark.parametrize(
    "text",
    [
        b"\x80", b"\xc0\x80", b"\xc1\xbf", b"\xc2", b"\xc2\x41", b"\xe0\x80\x80", b"\xe0\x9f\xbf",
        b"\xe0\xa0\x80", b"\xed\x9f\xbf", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xee\x80\x80",
        b"\xef\xbf\xbf", b"\xf0\x8f\xbf\xbf", b"\xf0\x90\x80\x80", b"\xf4\x8f\xbf\xbf",
        b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xff", b"a\xf1\x80\x80", b"\xe1\x80", b"ok",
    ],
)  # fmt: skip
def test_utf8_check_matches_python(text: bytes) -> None:
    canvas = Checked(4, 4)
    size = len(text).to_bytes(4, "little")
    for data in (
        b"\x0c" + size + text + bytes(4),
        b"\x0b" + size + text,
        b"\x0b" + bytes(4) + size + text,
    ):
        wanted = verdict(data)
        if wanted is None:
            canvas.check(data)
            continue
        with pytest.raises(ProtocolError) as caught:
            canvas.check(data)
        assert str(caught.value) == str(wanted)
