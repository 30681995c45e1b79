"""Write WGSL that reads, blurs, holds in workgroup memory, and writes pixels.

A u8 image is an array of 32-bit words: one pixel a word with four channels, else packed bytes. An
invocation writes whole words, so it writes four pixels of one or three channels, or one of four.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template
from typing import Final

from dala.gpu.compute.engines.base import Tensor
from dala.gpu.compute.engines.webgpu.wgsl.helpers import helper_source, read_wgsl, wgsl_parts

#: The workgroup size in ``image_pass.wgsl``.
GROUP: Final = 128


def _part(name: str) -> str:
    return wgsl_parts("pixel_parts.wgsl")[name]


@dataclass(frozen=True)
class ImageFormat:
    """The dtype and channels of an image; ``planes`` is True if channels are separate planes."""

    dtype: str
    channels: int
    planes: bool = False

    @classmethod
    def of(cls, tensor: Tensor) -> ImageFormat:
        """Return the format of a picture, which has one channel if it has two axes."""
        return cls(tensor.dtype, tensor.shape[2] if len(tensor.shape) == 3 else 1)

    @property
    def words(self) -> bool:
        """True if pixels share 32-bit words, so that they cannot be stored one by one."""
        return self.dtype == "u8" and self.channels != 4

    @property
    def element(self) -> str:
        """The element type of a buffer of such pixels."""
        if self.dtype == "u8":
            return "u32"
        return f"vec4<{self.dtype}>" if self.channels == 4 else self.dtype

    @property
    def parts(self) -> str:
        """The swizzle that selects the color of a fetched pixel."""
        return ".xyz" if self.channels == 4 else ""

    @property
    def fetched(self) -> str:
        """The type of a fetched pixel."""
        number = "u32" if self.dtype == "u32" else "f32"
        return number if self.channels == 1 else f"vec{self.channels}<{number}>"

    @property
    def refetched(self) -> str:
        """The type of a pixel of the intermediate picture."""
        return self.fetched if self.dtype == "f32" else self.fetched.replace("f32", "u32")

    @property
    def middle(self) -> tuple[str, int]:
        """The type and bytes of a pixel that is blurred along one axis."""
        number = "f32" if self.dtype == "f32" else "u32"
        if self.channels == 1:
            return number, 4
        return ("vec2<u32>", 8) if self.dtype == "u8" else (f"vec4<{number}>", 16)

    @property
    def held(self) -> tuple[str, int]:
        """The type and bytes of a blurred pixel in workgroup memory."""
        if self.dtype == "u8":
            return "u32", 4
        return ("f32", 4) if self.channels == 1 else ("vec4<f32>", 16)

    def read(self) -> str:
        """Return ``read_pixel(i)`` and the functions it calls."""
        used = ["unpack_rgba"] if (self.dtype, self.channels) == ("u8", 4) else []
        return f"{helper_source(used)}fn read_pixel(i: u32) -> vec4<f32> {{\n{self._read}\n}}\n"

    @property
    def _read(self) -> str:
        """The body of ``read_pixel(i: u32)``: pixel ``i`` of ``source``, missing channels 0."""
        return _part(f"read {self.dtype} {self.channels}")

    def fetch(self) -> str:
        """Return ``fetch(i)``: a pixel of ``source`` as :attr:`fetched`, for a blur."""
        if (self.dtype, self.channels) == ("u8", 4):
            return f"fn fetch(i: u32) -> {self.fetched} {{\n{_part('fetch')}\n}}\n"
        if self.dtype == "u32":
            return f"fn fetch(i: u32) -> {self.fetched} {{\n    return source[i];\n}}\n"
        part = {1: ".x", 3: ".xyz", 4: ""}[self.channels]
        body = f"    return read_pixel(i){part};"
        return f"{self.read()}\nfn fetch(i: u32) -> {self.fetched} {{\n{body}\n}}\n"

    def raw(self) -> str:
        """Return ``raw(i)``, the bytes of a u8 pixel of ``source``, and ``color(bytes)``."""
        value = "f32(w)"
        if self.channels > 1:
            value = "vec3<f32>(vec3<u32>(w & 255u, (w >> 8u) & 255u, (w >> 16u) & 255u))"
        return (
            f"fn raw(i: u32) -> u32 {{\n{_part(f'raw {self.channels}')}\n}}\n\n"
            f"fn color(w: u32) -> {'f32' if self.channels == 1 else 'vec3<f32>'} {{\n"
            f"    return {value};\n}}\n"
        )

    def middles(self, *, wide: bool = False) -> str:
        """Return the functions ``to_middle(color, alpha)`` and ``from_middle``.

        Numbers of u8 pictures have 16 bits; 17 if ``wide``.
        """
        number, alpha = self.middle[0][-4:-1], self.channels == 4
        if self.channels == 1:
            number = self.middle[0]
        arguments = f"c: {number if self.channels == 1 else f'vec3<{number}>'}"
        # The alpha of a u8 pixel is in the low bits of a float.
        arguments += f", a: {'f32' if self.dtype == 'u8' else number}" if alpha else ""
        if self.middle[0] == "vec2<u32>":
            shift = 24 if wide else 16
            text = _part("seventeen" if wide else "sixteen")
            return Template(f"{text}\n").substitute(
                arguments=arguments,
                channels=self.channels,
                kept=f" | (bitcast<u32>(a) << {shift}u)" if alpha else "",
                alpha=f", m.y >> {shift}u" if alpha else "",
            )
        value = "c" if self.channels == 1 else f"{self.middle[0]}(c, {'a' if alpha else '0.0f'})"
        return Template(f"{_part('middle')}\n").substitute(
            arguments=arguments,
            middle=self.middle[0],
            value=value,
            fetched=self.refetched,
            parts=".xyz" if self.channels == 3 else "",
        )

    def hold(self, color: str, alpha: str) -> str:
        """Return the expression for a pixel in workgroup memory: u8 in one word."""
        if self.channels == 1:
            return color
        if self.dtype != "u8":
            return f"{self.middle[0]}({color}, {alpha or '0.0f'})"
        return f"word({color}, {alpha or '0u'})"

    def holding(self) -> str:
        """Return the function ``word`` if :meth:`hold` calls it."""
        if self.dtype != "u8" or self.channels == 1:
            return ""
        return (
            "fn word(c: vec3<u32>, a: u32) -> u32 {\n"
            "    return (c.x + (c.y << 8u)) + ((c.z << 16u) + (a << 24u));\n}\n"
        )

    def stored(self, held: str) -> str:
        """Return a held pixel in its stored numbers, as programs expect it."""
        if self.dtype == "f32":
            return f"{held}.xyz" if self.channels == 3 else held
        if self.channels == 1:
            return f"i32({held})"
        return f"unpack_u8({held}){'.xyz' if self.channels == 3 else ''}"


def image_pass(
    source: ImageFormat, out: ImageFormat, *functions: str, by_number: bool = False
) -> str:
    """Return ``read_pixel`` and a ``main`` that stores ``value_at(x, y)`` for each pixel.

    Args:
        source: the format of the binding ``source``.
        out: the format of the binding ``result``.
        functions: other functions of ``pixels.wgsl`` that the shader calls.
        by_number: call ``value_at(i)`` with the number of the pixel, which takes no division.
    """
    used = {*functions, *(("unpack_rgba",) if (source.dtype, source.channels) == ("u8", 4) else ())}
    used |= {"round_bytes"} if out.dtype == "u8" else set()
    kind = "planes" if out.planes else f"{out.dtype.replace('u32', 'f32')} {out.channels}"
    write = f"{_part('four' if out.words else 'one')}\n{_part(f'store {kind}')}"
    place = "{0}" if by_number else "{0} % p.width, {0} / p.width"
    text = Template(read_wgsl("image_pass.wgsl")).substitute(
        read=source._read,
        write=Template(write).substitute(
            value=f"value_at({place.format('n')})", value_of_four=f"value_at({place.format('at')})"
        ),
    )
    return f"{helper_source(used)}\n{text}" if used else text


def image_groups(out: ImageFormat, pixels: int) -> int:
    """Return the number of workgroups of an :func:`image_pass` for this many pixels."""
    return -(-pixels // (GROUP * (4 if out.words else 1)))
