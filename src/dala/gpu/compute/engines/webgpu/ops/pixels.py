"""Reading and writing pictures in shaders, whatever their dtype and number of channels.

A pixel is a vec4<f32> there, with the numbers as stored (u8: 0 to 255); channels that a picture
lacks are 0. u8 buffers are words of four bytes, so an invocation writes four pixels of one or three
channels, whose bytes fill whole words, and one pixel of four.
"""

from __future__ import annotations

from typing import Final

#: The elements of a buffer as a shader declares it, by dtype and channels.
ELEMENT: Final = {
    ("f32", 1): "f32",
    ("f32", 3): "f32",
    ("f32", 4): "vec4<f32>",
    ("u8", 1): "u32",
    ("u8", 3): "u32",
    ("u8", 4): "u32",
}

#: The body of ``read_pixel(i: u32) -> vec4<f32>``; the buffer is called ``source``.
READ: Final = {
    ("f32", 1): "    return vec4<f32>(source[i], 0.0f, 0.0f, 0.0f);",
    ("f32", 3): (
        "    let at = i * 3u;\n"
        "    return vec4<f32>(source[at], source[at + 1u], source[at + 2u], 0.0f);"
    ),
    ("f32", 4): "    return source[i];",
    ("u8", 1): (
        "    let byte = (source[i >> 2u] >> ((i & 3u) << 3u)) & 255u;\n"
        "    return vec4<f32>(f32(byte), 0.0f, 0.0f, 0.0f);"
    ),
    # Three bytes from any place of a word on: the next word may be needed, never one beyond.
    ("u8", 3): (
        "    let at = i * 3u;\n"
        "    let shift = (at & 3u) << 3u;\n"
        "    var word = source[at >> 2u] >> shift;\n"
        "    if (shift > 8u) {\n"
        "        word |= source[(at >> 2u) + 1u] << (32u - shift);\n"
        "    }\n"
        "    return vec4<f32>(f32(word & 255u), f32((word >> 8u) & 255u), "
        "f32((word >> 16u) & 255u), 0.0f);"
    ),
    ("u8", 4): (
        "    let word = source[i];\n"
        "    return vec4<f32>((vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & "
        "vec4<u32>(255u));"
    ),
}

_ONE: Final = (
    "    if (n >= count) {{\n        return;\n    }}\n"
    "    let v = value_at(n % p.width, n / p.width);\n{store}"
)
_FOUR: Final = (
    "    if (n * 4u >= count) {\n        return;\n    }\n"
    "    var bytes: array<vec4<u32>, 4>;\n"
    "    for (var k = 0u; k < 4u; k++) {\n"
    "        let at = min(n * 4u + k, count - 1u);\n"
    "        bytes[k] = steps(value_at(at % p.width, at / p.width));\n"
    "    }\n"
)

#: The end of ``main``: ``n`` is the invocation's number, ``count`` the number of pixels.
WRITE: Final = {
    ("f32", 1): _ONE.format(store="    result[n] = v.x;"),
    ("f32", 3): _ONE.format(
        store="    result[n * 3u] = v.x;\n    result[n * 3u + 1u] = v.y;\n"
        "    result[n * 3u + 2u] = v.z;"
    ),
    ("f32", 4): _ONE.format(store="    result[n] = v;"),
    ("u8", 1): _FOUR + "    result[n] = bytes[0].x | (bytes[1].x << 8u) | (bytes[2].x << 16u) | "
    "(bytes[3].x << 24u);",
    ("u8", 3): _FOUR
    + "    let a = bytes[0];\n    let b = bytes[1];\n    let c = bytes[2];\n    let d = bytes[3];\n"
    "    result[n * 3u] = a.x | (a.y << 8u) | (a.z << 16u) | (b.x << 24u);\n"
    "    if (n * 12u + 4u < count * 3u) {\n"
    "        result[n * 3u + 1u] = b.y | (b.z << 8u) | (c.x << 16u) | (c.y << 24u);\n"
    "    }\n"
    "    if (n * 12u + 8u < count * 3u) {\n"
    "        result[n * 3u + 2u] = c.z | (d.x << 8u) | (d.y << 16u) | (d.z << 24u);\n"
    "    }",
    ("u8", 4): _ONE.format(
        store="    let b = steps(v);\n"
        "    result[n] = b.x | (b.y << 8u) | (b.z << 16u) | (b.w << 24u);"
    ),
    # A tensor of three planes.
    ("f32", "planes"): _ONE.format(
        store="    result[n] = v.x;\n    result[n + count] = v.y;\n"
        "    result[n + 2u * count] = v.z;"
    ),
}


def groups(dtype: str, channels: int | str, count: int, size: int) -> int:
    """Groups of ``size`` invocations that write so many pixels."""
    each = 4 if dtype == "u8" and channels != 4 else 1
    return -(-count // (each * size))
