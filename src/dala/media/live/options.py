"""The options of live streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dala.arguments import SECONDS, WAIT, ArgumentKind, Integer, Quantity, Settings
from dala.media.video.options import EncoderOptions
from dala.options import Options, option


class BitRate(ArgumentKind[int]):
    """Bits a second: a number, or text such as "4M" or "800k".

    >>> BitRate().check("live.open", "bit_rate", "2.5M")
    2500000
    """

    expected = "bits a second, such as 4_000_000 or '4M'"
    metavar = "N"

    def accept(self, value: Any) -> int:
        """Return the number."""
        if isinstance(value, bool):
            raise TypeError
        text = str(value).strip().lower().removesuffix("bit/s").strip()
        unit = {"k": 1e3, "m": 1e6, "g": 1e9}.get(text[-1:], 0)
        found = float(text[:-1]) * unit if unit else float(text)
        if not 1000 <= found <= 1e10:
            raise ValueError
        return round(found)


@dataclass(frozen=True, kw_only=True)
class StreamOptions(Options):
    """The options of everything that sends live.

    Args:
        bit_rate: bits a second of the pictures, such as 4_000_000 or "4M"; by default by the size.
        key_frames: seconds between key frames, at which receivers can begin.
        encoder: "auto" for hardware that works here, or the name of one; by default software.
        options: options of the encoder, such as ``{"preset": "superfast"}``.
        reconnect: seconds for which a lost receiver is tried again.
        timeout: seconds until a receiver that does not answer counts as lost.
        threads: encoding threads; 0 lets the encoder choose.
    """

    bit_rate: int | str | None = option(
        BitRate(), None, "bits a second, such as 4M (by the size)", command=True
    )
    key_frames: float = option(
        Quantity(0, 3600, "seconds", above=True),
        2.0,
        "seconds between key frames (2)",
        command=True,
    )
    encoder: str | None = option(
        EncoderOptions.specs()["encoder"].kind, None, "auto for hardware that works", command=True
    )
    options: Mapping[str, str | float] | None = option(Settings("a dict of the encoder's options"))
    reconnect: float = option(
        SECONDS, 300.0, "seconds for which what is lost is tried again (300)", command=True
    )
    timeout: float = option(WAIT, 10.0)
    threads: int = option(Integer(0), 0)
