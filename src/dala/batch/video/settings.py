"""Settings of encoders that a plan fixes, checked before anything runs."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from dala.batch.places import Template
from dala.batch.tasks import Json, JsonObject
from dala.errors import ParameterError

_SECONDS: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(s|sec|min|m|h)?")
_UNITS: Final = {"": 1, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600}
_PICTURES: Final = (".gif", ".apng", ".webp", ".png")


def encoder_spec(
    call: str,
    template: Template,
    codec: str | None,
    encoder: str | None,
    options: Mapping[str, str | float] | None,
    crf: int | None,
    threads: int | None,
    device: str,
    *,
    deep: bool = False,
) -> tuple[JsonObject, str, int]:
    """Return the settings of an encoder as JSON, FFmpeg's name of it, and its threads.

    Args:
        call: for messages.
        template: the names of the results, whose suffix names the container.
        codec: the codec; None for that of the container.
        encoder: hardware, or None.
        options: of the encoder.
        crf: the quality.
        threads: of the encoder; None for as many as ``video.write`` would use here.
        device: the id of the device for filters.
        deep: whether more than eight bits may be kept, which decides on the codec later.

    Raises:
        ParameterError: an argument is invalid.
    """
    suffix = Path(template.text).suffix.lower()
    if suffix in _PICTURES:
        raise ParameterError.invalid(
            call, "out", "the name of a video", template.text, "`dala filter` makes animations."
        )
    if encoder == "auto":
        raise ParameterError.invalid(
            call, "encoder", "the name of hardware, or None", encoder,
            "A plan fixes the encoder, because others make other bytes.",
        )  # fmt: skip
    given: dict[str, Json] = {str(name): str(value) for name, value in (options or {}).items()}
    if crf is not None:
        if isinstance(crf, bool) or not isinstance(crf, int) or not 0 <= crf <= 63:
            raise ParameterError.invalid(call, "crf", "an int from 0 to 63, or None", crf)
        given["crf"] = str(crf)
    name = _encoder_name(call, template, codec, encoder, deep)
    count = _threads(call, threads, name)
    settings: JsonObject = {
        "codec": codec, "encoder": encoder, "options": given, "threads": count, "device": device,
    }  # fmt: skip
    return settings, name, count


def _encoder_name(
    call: str, template: Template, codec: str | None, encoder: str | None, deep: bool
) -> str:
    """Return FFmpeg's name of the encoder, as far as the arguments say."""
    from dala.media.video.encode import default_codec, find_encoder
    from dala.media.video.output.hardware import check_encoder, hardware_choice

    container = Path(template.text).suffix.lower().lstrip(".")
    if template.text.endswith(("{suffix}", "{name}")):  # that of each source
        return find_encoder(codec)[0] if codec else ""
    if not container:
        raise ParameterError.invalid(
            call, "out", "a name with a suffix, such as 'clean/{stem}.mp4'", template.text
        )
    chosen = codec or default_codec(container)
    check_encoder(encoder, chosen, True)
    if encoder not in (None, "x264"):
        return hardware_choice(encoder, chosen, {}).name
    return find_encoder(chosen)[0] if codec or not deep else ""


def _threads(call: str, threads: int | None, encoder: str) -> int:
    from dala.media.video.encode import MAX_THREADS, default_threads

    if threads is None:
        return default_threads(encoder) or min(os.cpu_count() or 1, MAX_THREADS)
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= 128:
        raise ParameterError.invalid(call, "threads", "an int from 1 to 128, or None", threads)
    return threads


def seconds_of(call: str, chunk: float | str | None) -> float | None:
    """Return a duration in seconds.

    >>> seconds_of("videos", "60s"), seconds_of("videos", "2min"), seconds_of("videos", 1.5)
    (60.0, 120.0, 1.5)
    """
    if chunk is None:
        return None
    if isinstance(chunk, str):
        found = _SECONDS.fullmatch(chunk.strip().lower())
        if found is not None and float(found[1]) > 0:
            return float(found[1]) * _UNITS[found[2] or ""]
    elif isinstance(chunk, int | float) and not isinstance(chunk, bool) and 0 < chunk < math.inf:
        return float(chunk)
    raise ParameterError.invalid(call, "chunk", "seconds, such as 60 or '2min', or None", chunk)
