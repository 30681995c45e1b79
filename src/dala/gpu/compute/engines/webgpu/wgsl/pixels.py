"""Write WGSL that reads, blurs, holds in workgroup memory, and writes pixels.

A u8 image is an array of 32-bit words: one pixel a word with four channels, else packed bytes. An
invocation writes whole words, so it writes four pixels of one or three channels, or one of four.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template
from typing import Final

from dala.gpu.compute.engines.webgpu.wgsl.helpers import helper_source, read_wgsl

#: The workgroup size in ``image_pass.wgsl``.
GROUP: Final = 128

# Three bytes may start anywhere in a word and continue in the next.
_THREE_BYTES: Final = (
    "    let at = i * 3u;\n"
    "    let shift = (at & 3u) * 8u;\n"
    "    let low = source[at >> 2u] >> shift;\n"
    "    let high = source[(at + 2u) >> 2u] << ((32u - shift) & 31u);\n"
    "    let w = select(low, low | high, shift > 8u);\n"
)

#: The body of ``read_pixel(i: u32) -> vec4<f32>``: pixel ``i`` of ``source``, missing channels 0.
_READ: Final = {
    ("f32", 1): "    return vec4<f32>(source[i], 0.0f, 0.0f, 0.0f);",
    ("f32", 3): (
        "    let at = i * 3u;\n"
        "    return vec4<f32>(source[at], source[at + 1u], source[at + 2u], 0.0f);"
    ),
    ("f32", 4): "    return source[i];",
    ("u32", 1): "    return vec4<f32>(f32(source[i]), 0.0f, 0.0f, 0.0f);",
    ("u32", 4): "    return vec4<f32>(source[i]);",
    ("u8", 1): (
        "    let byte = (source[i >> 2u] >> ((i & 3u) << 3u)) & 255u;\n"
        "    return vec4<f32>(f32(byte), 0.0f, 0.0f, 0.0f);"
    ),
    ("u8", 3): (
        f"{_THREE_BYTES}"
        "    return vec4<f32>(vec4<u32>(w & 255u, (w >> 8u) & 255u, (w >> 16u) & 255u, 0u));"
    ),
    ("u8", 4): "    return unpack_rgba(source[i]);",
}

_WRITE_ONE: Final = "    if (n >= count) {{\n        return;\n    }}\n    let v = $value;\n{store}"
_WRITE_FOUR: Final = (
    "    if (n * 4u >= count) {\n        return;\n    }\n"
    "    var bytes: array<vec4<u32>, 4>;\n"
    "    for (var k = 0u; k < 4u; k++) {\n"
    "        let at = min(n * 4u + k, count - 1u);\n"
    "        bytes[k] = round_bytes($value_of_four);\n"
    "    }\n"
)

#: The end of ``main``: ``n`` is the invocation's number, ``count`` the number of pixels.
_WRITE: Final = {
    ("f32", 1): _WRITE_ONE.format(store="    result[n] = v.x;"),
    ("f32", 3): _WRITE_ONE.format(
        store="    result[n * 3u] = v.x;\n    result[n * 3u + 1u] = v.y;\n"
        "    result[n * 3u + 2u] = v.z;"
    ),
    ("f32", 4): _WRITE_ONE.format(store="    result[n] = v;"),
    ("u32", 1): _WRITE_ONE.format(store="    result[n] = v.x;"),
    ("u32", 4): _WRITE_ONE.format(store="    result[n] = v;"),
    ("u8", 1): _WRITE_FOUR + "    result[n] = bytes[0].x | (bytes[1].x << 8u) "
    "| (bytes[2].x << 16u) | (bytes[3].x << 24u);",
    ("u8", 3): _WRITE_FOUR
    + "    let a = bytes[0];\n    let b = bytes[1];\n    let c = bytes[2];\n    let d = bytes[3];\n"
    "    result[n * 3u] = a.x | (a.y << 8u) | (a.z << 16u) | (b.x << 24u);\n"
    "    if (n * 12u + 4u < count * 3u) {\n"
    "        result[n * 3u + 1u] = b.y | (b.z << 8u) | (c.x << 16u) | (c.y << 24u);\n"
    "    }\n"
    "    if (n * 12u + 8u < count * 3u) {\n"
    "        result[n * 3u + 2u] = c.z | (d.x << 8u) | (d.y << 16u) | (d.z << 24u);\n"
    "    }",
    ("u8", 4): _WRITE_ONE.format(
        store="    let b = round_bytes(v);\n"
        "    result[n] = b.x | (b.y << 8u) | (b.z << 16u) | (b.w << 24u);"
    ),
}
#: The same for a tensor of three planes.
_WRITE_PLANES: Final = _WRITE_ONE.format(
    store="    result[n] = v.x;\n    result[n + count] = v.y;\n    result[n + 2u * count] = v.z;"
)

# A blur does not change alpha: its byte is kept in the low bits of a float, 2**23 + alpha.
_FETCH_RGBA8: Final = """
    let w = source[i];
    let c = vec3<f32>(vec3<u32>(w & 255u, (w >> 8u) & 255u, (w >> 16u) & 255u));
    return vec4<f32>(c, bitcast<f32>((w >> 24u) | 0x4b000000u));"""

#: The body of ``raw(i: u32) -> u32``: the bytes of a u8 pixel, from the lowest on.
_RAW: Final = {
    1: "    return (source[i >> 2u] >> ((i & 3u) << 3u)) & 255u;",
    3: f"{_THREE_BYTES}    return w;",
    4: "    return source[i];",
}

#: Functions ``to_middle`` and ``from_middle`` of u8 pictures: 16 bits per number, in two words.
_SIXTEEN: Final = """fn to_middle($arguments) -> vec2<u32> {
    return vec2<u32>(c.x | (c.y << 16u), c.z$kept);
}

fn from_middle(m: vec2<u32>) -> vec$channels<u32> {
    return vec$channels<u32>(m.x & 65535u, m.x >> 16u, m.y & 65535u$alpha);
}
"""
#: The same with 17 bits per number, for sums of more than 257 bytes.
_SEVENTEEN: Final = """fn to_middle($arguments) -> vec2<u32> {
    return vec2<u32>(c.x | (c.y << 17u), (c.y >> 15u) | (c.z << 2u)$kept);
}

fn from_middle(m: vec2<u32>) -> vec$channels<u32> {
    let y = (m.x >> 17u) | ((m.y & 3u) << 15u);
    return vec$channels<u32>(m.x & 0x1ffffu, y, (m.y >> 2u) & 0x1ffffu$alpha);
}
"""
#: For other pictures: the arguments, the type of the intermediate picture and its value, and what
#: is read back.
_MIDDLE: Final = """fn to_middle($arguments) -> $middle {
    return $value;
}

fn from_middle(m: $middle) -> $fetched {
    return m$parts;
}
"""


@dataclass(frozen=True)
class ImageFormat:
    """The dtype and channels of an image; ``planes`` is True if channels are separate planes."""

    dtype: str
    channels: int
    planes: bool = False

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
        body = _READ[self.dtype, self.channels]
        return f"{helper_source(used)}fn read_pixel(i: u32) -> vec4<f32> {{\n{body}\n}}\n"

    def fetch(self) -> str:
        """Return ``fetch(i)``: a pixel of ``source`` as :attr:`fetched`, for a blur."""
        if (self.dtype, self.channels) == ("u8", 4):
            return f"fn fetch(i: u32) -> {self.fetched} {{{_FETCH_RGBA8}\n}}\n"
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
            f"fn raw(i: u32) -> u32 {{\n{_RAW[self.channels]}\n}}\n\n"
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
            return Template(_SEVENTEEN if wide else _SIXTEEN).substitute(
                arguments=arguments,
                channels=self.channels,
                kept=f" | (bitcast<u32>(a) << {shift}u)" if alpha else "",
                alpha=f", m.y >> {shift}u" if alpha else "",
            )
        value = "c" if self.channels == 1 else f"{self.middle[0]}(c, {'a' if alpha else '0.0f'})"
        return Template(_MIDDLE).substitute(
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
            "    return (c.x | (c.y << 8u)) | ((c.z << 16u) | (a << 24u));\n}\n"
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
    write = _WRITE_PLANES if out.planes else _WRITE[out.dtype, out.channels]
    place = "{0}" if by_number else "{0} % p.width, {0} / p.width"
    text = Template(read_wgsl("image_pass.wgsl")).substitute(
        read=_READ[source.dtype, source.channels],
        write=Template(write).substitute(
            value=f"value_at({place.format('n')})", value_of_four=f"value_at({place.format('at')})"
        ),
    )
    return f"{helper_source(used)}\n{text}" if used else text


def image_groups(out: ImageFormat, pixels: int) -> int:
    """Return the number of workgroups of an :func:`image_pass` for this many pixels."""
    return -(-pixels // (GROUP * (4 if out.words else 1)))
