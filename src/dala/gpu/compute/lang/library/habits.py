"""Advice for habits from other shading languages."""

from __future__ import annotations

import re
from typing import Final

_TYPES: Final = r"(?:float|int|uint|bool|double|half|[iub]?vec[234]|mat[234]|float[234]|int[234])"

#: What the text of a line looks like, what it is, and what to write instead.
_LINES: Final = (
    (rf"^\s*{_TYPES}\s+\w+\s*[(]", "a function of GLSL",
     "Write def name(x): and indent its body."),
    (rf"^\s*(?:const\s+|in\s+|out\s+|uniform\s+)*{_TYPES}\s+\w+", "a type before a name",
     "Write name = value; types are found, or written after the name: x: float = 0.5."),
    (r"^\s*(?:void|uniform|varying|precision|#)\s*\w", "GLSL",
     "Write def name(x, *, amount=0.5):."),
    (r"&&|\|\|", "&& or ||", "Write 'and', 'or', 'not'."),
    (r"\w\s*[?].*:", "? :", "Write a if condition else b."),
    (r"\+\+|--\s*[;)]|--$", "++ or --", "Write x += 1."),
    (r"[{};]\s*$", "a brace or semicolon", "Blocks are indented: if x > 0: and a new line."),
)  # fmt: skip

#: Names of other languages, and what to write instead.
_NAMES: Final = {
    "saturate": "Write clamp(x, 0.0, 1.0).",
    "frac": "Write fract(x).",
    "mul": "Write m @ v.",
    "texture": "Write img.sample_uv(u, v).",
    "texture2D": "Write img.sample_uv(u, v).",
    "tex2D": "Write img.sample_uv(u, v).",
    "texelFetch": "Write img.sample(x, y), or img[dx, dy] for an offset.",
    "textureSize": "Write img.width and img.height.",
    "gl_FragCoord": "Write y, x = position().",
    "fragCoord": "Write y, x = position().",
    "fragColor": "Return the color: return rgba(r, g, b, a).",
    "gl_FragColor": "Return the color: return rgba(r, g, b, a).",
    "true": "Write True.",
    "false": "Write False.",
    "discard": "Return a transparent pixel: return rgba(0, 0, 0, 0).",
    **{f"float{n}": f"Write vec{n}(...)." for n in (2, 3, 4)},
    **{f"int{n}": f"Write ivec{n}(...)." for n in (2, 3, 4)},
    **{f"float{n}x{n}": f"Write mat{n}(...)." for n in (2, 3, 4)},
}  # fmt: skip


def advice_for_line(line: str) -> tuple[str, str] | None:
    """Return the error of a line that is GLSL and no Python, and advice; None for others."""
    for pattern, what, advice in _LINES:
        if re.search(pattern, line):
            return f"{what} is not part of the language", advice
    return None


def advice_for_name(name: str) -> str:
    """Return the replacement of a name of another language, or ""."""
    return _NAMES.get(name, "")
