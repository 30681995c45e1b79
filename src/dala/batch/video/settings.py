"""Settings of encoders that a plan fixes, checked before anything runs."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

from dala.batch.options import JobOptions
from dala.batch.pictures import device_id
from dala.batch.places import Template
from dala.errors import ParameterError
from dala.media.video.encode import MAX_THREADS, default_codec, default_threads, find_encoder
from dala.media.video.output.hardware import check_encoder, hardware_choice

J = TypeVar("J", bound=JobOptions)
_PICTURES: Final = (".gif", ".apng", ".webp", ".png")


def encoder_spec(call: str, template: Template, options: J, *, deep: bool = False) -> tuple[J, str]:
    """Return options with what a plan fixes, and FFmpeg's name of the encoder.

    Args:
        call: for messages.
        template: the names of the results, whose suffix names the container.
        options: those of the job.
        deep: whether more than eight bits may be kept, which decides on the codec later.

    Raises:
        ParameterError: an argument is invalid.
    """
    suffix = Path(template.text).suffix.lower()
    if suffix in _PICTURES:
        raise ParameterError.invalid(
            call, "out", "the name of a video", template.text, "`dala filter` makes animations."
        )
    if options.encoder == "auto":
        raise ParameterError.invalid(
            call, "encoder", "the name of hardware, or None", options.encoder,
            "A plan fixes the encoder, because others make other bytes.",
        )  # fmt: skip
    place = device_id(options.device)
    name = _encoder_name(call, template, options.codec, options.encoder, deep)
    count = options.threads or default_threads(name) or min(os.cpu_count() or 1, MAX_THREADS)
    return replace(options, threads=count, device=place), name


def _encoder_name(
    call: str, template: Template, codec: str | None, encoder: str | None, deep: bool
) -> str:
    """Return FFmpeg's name of the encoder, as far as the arguments say."""
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
