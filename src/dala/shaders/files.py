"""Load ISF files, with their vertex shaders and pictures."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Final

from dala.arguments import checked_path
from dala.budget import Limits
from dala.errors import StorageError, StorageNotFound
from dala.gpu.compute.kernel import check_limits
from dala.gpu.compute.lang.limits import MAX_SOURCE
from dala.gpu.compute.passes.program import KernelProgram
from dala.shaders.interactive import isf, read_header
from dala.shaders.toys import shadertoy
from dala.typing import PathLike
from dala.untrusted.place import NotThere, Place

#: Ends of the names of shaders' files.
SUFFIXES: Final = (".fs", ".glsl", ".frag")
_TOY: Final = re.compile(r"\bvoid\s+mainImage\s*\(")
_MAIN: Final = re.compile(r"\bvoid\s+main(Image)?\s*\(")


def load(path: PathLike, *, limits: Limits | None = None) -> KernelProgram:
    """Return the program of an ISF file: a filter, a generator or a transition.

    A file of Shadertoy's is read, too: one with ``mainImage`` and without a header. For its buffers
    and channels there is :func:`dala.shaders.shadertoy`.

    A vertex shader of the same name (``.vs``) and the pictures that the header imports are read
    from the folder of the file, and nothing outside of it. Inputs of the header are parameters of
    the program; images are its inputs. No GPU compiler sees the text: it is parsed, checked and
    translated to a kernel.

    Args:
        path: of the file, ``.fs``; for Shadertoy's also ``.glsl`` or ``.frag``.
        limits: ``dala.limits(...)`` for each pass, as for text from strangers.

    Raises:
        KernelSyntaxError: the text is outside the subset; the message shows the line.

    >>> import tempfile, numpy as np
    >>> from dala.media import gpu
    >>> text = '''/*{"INPUTS": [{"NAME": "inputImage", "TYPE": "image"},
    ...     {"NAME": "gain", "TYPE": "float", "MIN": 0, "MAX": 4, "DEFAULT": 2}]}*/
    ... void main() {
    ...     vec4 c = IMG_THIS_PIXEL(inputImage);
    ...     gl_FragColor = vec4(c.rgb * gain, c.a);
    ... }'''
    >>> with tempfile.NamedTemporaryFile("w", suffix=".fs") as file:
    ...     _ = file.write(text); file.flush()
    ...     brighter = load(file.name)
    >>> gpu.apply(np.array([[[10, 20, 30]]], np.uint8), brighter, gain=3.0, device="cpu").tolist()
    [[[30, 60, 90]]]
    """
    file = checked_path("dala.shaders.load", "path", path)
    check_limits("dala.shaders.load", limits)
    fragment = _text(file)
    if is_toy(fragment):
        return from_text(fragment, file.stem, limits)
    header = read_header(fragment)
    advice = "What it names must be in the folder of the shader."
    place = Place((file.parent, file.resolve().parent), advice)
    call, argument = "dala.shaders.load", "IMPORTED"
    images = {
        name: place.open(where, call, argument=argument) for name, where in header.imported.items()
    }
    vertex = ""
    with suppress(NotThere):
        opened = place.open(file.with_suffix(".vs").name, call)
        vertex = opened.content(4 * MAX_SOURCE, call).decode("utf-8", "replace").lstrip("\ufeff")
    return isf(
        fragment,
        vertex=vertex,
        images=images,
        name=file.stem,
        limits=limits,
    )


def is_toy(text: str) -> bool:
    """Return whether a text is one of Shadertoy's.

    >>> is_toy("void mainImage(out vec4 c, in vec2 p) {}"), is_toy("/*{}*/ void main() {}")
    (True, False)
    """
    return not text.lstrip().startswith("/*{") and bool(_TOY.search(text))


def is_glsl(text: str) -> bool:
    """Return whether a text is a shader rather than a kernel.

    >>> is_glsl("/*{}*/ void main() {}"), is_glsl("def f(px: Pixel): return px")
    (True, False)
    """
    return bool(_MAIN.search(text))


def from_text(text: str, name: str = "shader", limits: Limits | None = None) -> KernelProgram:
    """Return the program of the text of an ISF file, or of one of Shadertoy's.

    >>> from_text("void mainImage(out vec4 c, in vec2 p) { c = vec4(1.0); }").name
    'shader'
    """
    if is_toy(text):
        return shadertoy(text, name=name, limits=limits)
    return isf(text, name=name, limits=limits)


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            data = opened.read(4 * MAX_SOURCE)
    except OSError as error:
        kind = StorageNotFound if isinstance(error, FileNotFoundError) else StorageError
        problem = error.strerror or "it cannot be read"
        raise kind(f"dala.shaders.load: {str(file)!r}: {problem}.") from None
    return data.decode("utf-8", errors="replace").lstrip("\ufeff")
