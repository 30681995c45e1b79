"""Shadertoy texts: ``mainImage``, a common part, buffers A to D and four channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from dala.arguments import Items, Selection
from dala.budget import Limits
from dala.errors import ParameterError
from dala.gpu.compute.kernel import check_limits
from dala.gpu.compute.passes.program import KernelProgram, ProgramPass
from dala.shaders.glsl.entry import (
    NAMED,
    SAMPLER,
    TEXT,
    Given,
    ShaderText,
    identifier,
    make_kernel,
)
from dala.shaders.glsl.tree import FLOAT, INT, VEC2, VEC3, VEC4, GlslType
from dala.shaders.sound import toy
from dala.typing import ImageLike, NDArray

#: What a channel reads: a buffer ("A" to "D"), an input of the program by its name, a picture.
Channel: TypeAlias = "str | ImageLike | None"
#: The channels of all passes, or of each by its name: "image", "A" to "D".
Channels: TypeAlias = "Sequence[Channel] | Mapping[str, Sequence[Channel]]"

_BUFFERS: Final = "ABCD"
_MAIN: Final = """
void main() {
    vec4 dala_color = vec4(0.0, 0.0, 0.0, 1.0);
    mainImage(dala_color, gl_FragCoord.xy);
    gl_FragColor = %s;
}
"""
_GIVEN: Final = (
    Given("iTime", FLOAT, "Time"),
    Given("iFrame", INT, "FrameNumber"),
    Given("iDate", VEC4, "Date"),
    Given("iPointer", VEC3, "Pointer"),
)
_SPECIAL: Final[Mapping[str, tuple[GlslType, str]]] = {
    "iResolution": (VEC3, "vec3(g_RENDERSIZE, 1.0)"),
    "iTimeDelta": (FLOAT, "1.0 / 60.0"),
    "iFrameRate": (FLOAT, "60.0"),
    "iSampleRate": (FLOAT, "44100.0"),
    "iPlace": (VEC2, "vec2(g_iPointer.x, where(g_iPointer.y > 0.0, h - g_iPointer.y, 0.0))"),
    "iMouse": (
        VEC4,
        "vec4(g_iPlace, g_iPlace * where(g_iPointer.z > 0.0, 1.0, -1.0))",
    ),
    "iChannelTime": (
        GlslType("float", length=4), "[g_iTime, g_iTime, g_iTime, g_iTime]"
    ),
}  # fmt: skip


def shadertoy(
    image: str,
    common: str = "",
    buffers: Mapping[str, str] | None = None,
    channels: Channels = (),
    sound: ImageLike | None = None,
    *,
    name: str = "shadertoy",
    edge: str = "clamp",
    limits: Limits | None = None,
) -> KernelProgram:
    """Return the program of a text with ``mainImage``, as Shadertoy has it.

    It goes where a kernel goes: ``program.start(width, height)`` gives frames, scenes, videos and
    surfaces set its time and pointer.

    Args:
        image: the text of the image.
        common: text before that of the image and of each buffer.
        buffers: texts of the buffers "A" to "D", which keep floats from frame to frame.
        channels: what ``iChannel0`` to ``iChannel3`` read: "A" to "D", the name of an input, a
            picture, "sound", or None; for all passes, or by pass: {"image": ["A"], "A": ["A"]}.
        sound: a picture for channels that read "sound": spectrum in the upper row, waveform below;
            by default what ``state.render(sound=)`` hears.
        name: the program's name.
        edge: beyond pictures: "clamp", "repeat" or "mirror". Buffers are always clamped.
        limits: ``dala.limits(...)`` for each pass, as for text from strangers.

    Raises:
        KernelSyntaxError: the text is outside the subset; the message shows the line.

    >>> plasma = shadertoy('''
    ... void mainImage(out vec4 color, in vec2 place) {
    ...     vec2 uv = place / iResolution.xy;
    ...     color = vec4(uv, 0.5 + 0.5 * sin(iTime), 1.0);
    ... }''')
    >>> with plasma.start(2, 1, device="cpu") as state:
    ...     state.render(time=0.0).numpy()[0].tolist()
    [[64, 128, 128, 255], [191, 128, 128, 255]]
    """
    call = "shadertoy"
    check_limits(call, limits)
    NAMED.check_optional(call, "buffers", buffers)
    texts = {**(buffers or {}), "image": image}
    for argument, text in {**texts, "common": common, "name": name, "edge": edge}.items():
        TEXT.check(call, argument, text)
    if not set(buffers or {}) <= set(_BUFFERS):
        expected = "texts of buffers 'A' to 'D'"
        raise ParameterError.invalid(call, "buffers", expected, buffers, "Write {'A': text}.")
    Selection("clamp", "repeat", "mirror").check(call, "edge", edge)
    pictures: dict[str, NDArray] = {}
    passes = []
    for key in (*sorted(buffers or {}), "image"):
        reads = _reads(key, channels, sound, pictures, [*(buffers or {})])
        given = [Given(channel, SAMPLER) for channel in reads]
        sizes = [
            f"vec3(f32(g_{c}.width), f32(g_{c}.height), 1.0)" if c in reads else "vec3(0.0)"
            for c in (f"iChannel{i}" for i in range(4))
        ]
        special = {
            **_SPECIAL,
            "iChannelResolution": (VEC3._replace(length=4), f"[{', '.join(sizes)}]"),
        }
        color = "vec4(dala_color.rgb, 1.0)" if key == "image" else "dala_color"
        made = ShaderText(
            identifier(name),
            "\n".join([*[common] * bool(common), texts[key], _MAIN % color]),
            [*given, *_GIVEN],
            edges={c: edge for c, source in reads.items() if source not in _BUFFERS},
            special=special,
            whole=True,
            levels=True,
        )
        target = "" if key == "image" else key
        dtype = "" if key == "image" else "f32"
        passes.append(ProgramPass(make_kernel(made, limits), target, 1.0, dtype, reads))
    heard = any("sound" in p.sources for p in passes) and sound is None
    return KernelProgram(name, passes, images=pictures, sounds={"sound": toy} if heard else {})


def _reads(
    key: str,
    channels: Channels,
    sound: ImageLike | None,
    pictures: dict[str, NDArray],
    buffers: Sequence[str],
) -> dict[str, str]:
    """Return the sources of a pass's channels, by name; keep pictures that are given."""
    own = channels.get(key, ()) if isinstance(channels, Mapping) else channels
    found: dict[str, str] = {}
    Items("at most 4 of each pass", range(5)).check("shadertoy", "channels", own)
    for number, channel in enumerate(own):
        source = channel
        if isinstance(channel, str) and channel == "sound" and sound is not None:
            source = sound
        if isinstance(channel, str) and channel in _BUFFERS and channel not in buffers:
            raise ParameterError.invalid(
                "shadertoy",
                "channels",
                f"one of the buffers {', '.join(buffers) or 'given'}",
                channel,
            )
        if source is not None and not isinstance(source, str):
            from dala.media.pictures.pixels import to_rgba

            label = "sound" if isinstance(channel, str) else f"{key}{number}"
            picture = to_rgba(source, "shadertoy")
            pictures[label] = picture[::-1] if label == "sound" else picture  # y = 0 is below
            source = label
        if isinstance(source, str):
            found[f"iChannel{number}"] = source
    return found
