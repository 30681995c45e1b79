"""Pictures in memory and in workgroup memory, as WGSL: fetching, holding, storing one pixel.

Colours are ``vec3<f32>`` while they are blurred (gray ones ``f32``), u8 ones within 0..255. Alpha
goes beside them untouched: a byte in the low bits of a float, where 2**23 has room. A picture
of bytes is an array of words, of whole pixels where it has four channels.
"""

from __future__ import annotations

from dataclasses import dataclass

_FETCH = {
    ("u8", 4): """
    let w = source[i];
    let c = vec3<f32>(vec3<u32>(w & 255u, (w >> 8u) & 255u, (w >> 16u) & 255u));
    return vec4<f32>(c, bitcast<f32>((w >> 24u) | 0x4b000000u));""",
    ("u8", 3): """
    let first = i * 3u;
    let shift = (first & 3u) * 8u;
    let low = source[first >> 2u] >> shift;
    let w = select(low, low | (source[(first + 2u) >> 2u] << ((32u - shift) & 31u)), shift > 8u);
    return vec3<f32>(vec3<u32>(w & 255u, (w >> 8u) & 255u, (w >> 16u) & 255u));""",
    ("u8", 1): """
    return f32((source[i >> 2u] >> ((i & 3u) * 8u)) & 255u);""",
    ("f32", 4): """
    return source[i];""",
    ("f32", 3): """
    return vec3<f32>(source[i * 3u], source[i * 3u + 1u], source[i * 3u + 2u]);""",
    ("f32", 1): """
    return source[i];""",
}

# Sixteen bits for each number: 2**23 + n holds the whole number n in its low bits.
_SIXTEEN = """fn to_sixteen(v: f32) -> u32 {
    return bitcast<u32>(v * 257.0f + 8388608.0f) & 65535u;
}

fn from_sixteen(bits: u32) -> f32 {
    return bitcast<f32>(bits | 0x4b000000u) - 8388608.0f;
}
"""

_MIDDLE = {
    ("u8", 4): """fn to_middle(c: vec3<f32>, a: f32) -> vec2<u32> {
    return vec2<u32>(
        to_sixteen(c.x) | (to_sixteen(c.y) << 16u),
        to_sixteen(c.z) | (bitcast<u32>(a) << 16u));
}

fn from_middle(m: vec2<u32>) -> vec4<f32> {
    return vec4<f32>(
        from_sixteen(m.x & 65535u), from_sixteen(m.x >> 16u), from_sixteen(m.y & 65535u),
        bitcast<f32>((m.y >> 16u) | 0x4b000000u));
}
""",
    ("f32", 4): """fn to_middle(c: vec3<f32>, a: f32) -> vec4<f32> {
    return vec4<f32>(c, a);
}

fn from_middle(m: vec4<f32>) -> vec4<f32> {
    return m;
}
""",
    ("f32", 3): """fn to_middle(c: vec3<f32>) -> vec4<f32> {
    return vec4<f32>(c, 0.0f);
}

fn from_middle(m: vec4<f32>) -> vec3<f32> {
    return m.xyz;
}
""",
}
_MIDDLE["u8", 3] = """fn to_middle(c: vec3<f32>) -> vec2<u32> {
    return vec2<u32>(to_sixteen(c.x) | (to_sixteen(c.y) << 16u), to_sixteen(c.z));
}

fn from_middle(m: vec2<u32>) -> vec3<f32> {
    return vec3<f32>(
        from_sixteen(m.x & 65535u), from_sixteen(m.x >> 16u), from_sixteen(m.y & 65535u));
}
"""
_MIDDLE["u8", 1] = _MIDDLE["f32", 1] = """fn to_middle(c: f32) -> f32 {
    return c;
}

fn from_middle(m: f32) -> f32 {
    return m;
}
"""


@dataclass(frozen=True)
class ImageFormat:
    """A kind of picture."""

    dtype: str
    channels: int

    @property
    def words(self) -> bool:
        """Whether pixels share words of memory, so that no pixel can be stored alone."""
        return self.dtype == "u8" and self.channels != 4

    @property
    def memory(self) -> str:
        """The item type of a binding."""
        if self.dtype == "u8":
            return "u32"
        return "vec4<f32>" if self.channels == 4 else "f32"

    @property
    def color(self) -> str:
        """The type of a colour that is blurred."""
        return "f32" if self.channels == 1 else "vec3<f32>"

    @property
    def parts(self) -> str:
        """What gives the colour of a fetched pixel."""
        return ".xyz" if self.channels == 4 else ""

    @property
    def fetched(self) -> str:
        """The type of a fetched pixel."""
        return "f32" if self.channels == 1 else f"vec{self.channels}<f32>"

    @property
    def middle(self) -> tuple[str, int]:
        """The type and the bytes of a pixel that is blurred along one axis."""
        if self.channels == 1:
            return "f32", 4
        return ("vec2<u32>", 8) if self.dtype == "u8" else ("vec4<f32>", 16)

    @property
    def middle_scale(self) -> float:
        """What a number from the middle is to be multiplied with."""
        return 1 / 257 if self.dtype == "u8" and self.channels > 1 else 1.0

    @property
    def held(self) -> tuple[str, int]:
        """The type and the bytes of a blurred pixel in workgroup memory."""
        if self.dtype == "u8":
            return "u32", 4
        return ("f32", 4) if self.channels == 1 else ("vec4<f32>", 16)

    def fetch(self) -> str:
        """``fetch(i)``: a pixel of ``source`` by its number."""
        body = _FETCH[self.dtype, self.channels]
        return f"fn fetch(i: u32) -> {self.fetched} {{{body}\n}}\n"

    def middles(self) -> str:
        """``to_middle(colour, alpha)`` and ``from_middle``."""
        text = _MIDDLE[self.dtype, self.channels]
        return _SIXTEEN + "\n" + text if self.middle[0] == "vec2<u32>" else text

    def hold(self, color: str, alpha: str) -> str:
        """A blurred pixel as it is held: u8 rounded, in one word."""
        if self.dtype == "f32":
            return color if self.channels == 1 else f"vec4<f32>({color}, {alpha or '0.0f'})"
        if self.channels == 1:
            return f"u32({color} + 0.5f)"
        return f"word({color}, {alpha or '0.0f'})"

    def holding(self) -> str:
        """``word``, if :meth:`hold` calls it."""
        if self.dtype == "f32" or self.channels == 1:
            return ""
        return (
            "fn word(c: vec3<f32>, a: f32) -> u32 {\n"
            "    let b = vec3<u32>(c + 0.5f);\n"
            "    return (b.x | (b.y << 8u)) | ((b.z << 16u) | (bitcast<u32>(a) << 24u));\n}\n"
        )

    def stored(self, held: str) -> str:
        """The stored numbers of a held pixel, as programs take them."""
        if self.dtype == "f32":
            return f"{held}.xyz" if self.channels == 3 else held
        if self.channels == 1:
            return f"i32({held})"
        return f"unpack_u8({held}){'.xyz' if self.channels == 3 else ''}"
