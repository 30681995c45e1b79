"""The optional parts of the distribution, their packages, and how to install them.

The distribution is ``dala-gpu``; the module and the command are ``dala``. Every hint about
installing is made by :func:`pip_install`, so all have one form.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from dala.errors import MissingPackage

#: The name on package indexes. ``dala`` there is another project.
DISTRIBUTION: Final = "dala-gpu"

#: Packages that are always installed.
CORE: Final = ("numpy", "llvmlite", "wgpu", "rendercanvas")

#: For each extra: what it is for, and its packages. A test compares them with pyproject.toml.
EXTRAS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "media": (
        "pictures, videos and text (dala.media)",
        ("av", "pillow", "freetype-py", "font-source-sans-pro", "resvg-py", "uharfbuzz"),
    ),
    "text": ("a font with Arabic, Hebrew, Thai, Devanagari and Georgian", ("pymupdf-fonts",)),
    "color": ("LUT files that OpenColorIO reads", ("opencolorio",)),
    "ml": ("models (dala.ml)", ("onnxruntime", "onnxruntime-ep-webgpu")),
    "view": ("windows", ("glfw",)),
    "live": (
        "playing sound, WHIP, a virtual camera for calls",
        ("sounddevice", "cryptography", "pyvirtualcam"),
    ),
    "studio": (
        "the studio, a page to play with (dala.studio)",
        ("starlette", "uvicorn", "websockets", "anywidget", "cryptography", "segno"),
    ),
    "batch": ("folders of pictures and videos (dala.batch)", ("fsspec", "pyarrow")),
    "cuda": ("NVIDIA GPUs without Vulkan", ("cuda-bindings",)),
    "cluster": ("dala.batch over many machines", ("ray",)),
}


@contextmanager
def needing(call: str, extra: str, package: str = "", why: str = "") -> Iterator[None]:
    """Raise MissingPackage, with the command that installs an extra, if an import fails.

    Args:
        call: the call that needs it.
        extra: the extra that has it.
        package: its name for people; by default that of the module.
        why: what needs it, such as ", and tables need it".

    >>> with needing("example", "media"):
    ...     import not_there
    Traceback (most recent call last):
    dala.errors.MissingPackage: example: not_there is not installed. Run: pip install ...
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingPackage(
            f"{call}: {package or error.name} is not installed{why}. Run: {pip_install(extra)}"
        ) from None


def pip_install(*extras: str, upgrade: bool = False) -> str:
    """Return the command that installs Dala with some of its extras, as every shell takes it.

    >>> print(pip_install("media"))
    pip install "dala-gpu[media]"
    >>> print(pip_install("media", "ml"))
    pip install "dala-gpu[media,ml]"
    >>> print(pip_install(upgrade=True))
    pip install --upgrade dala-gpu
    """
    what = f'"{DISTRIBUTION}[{",".join(extras)}]"' if extras else DISTRIBUTION
    return f"pip install {'--upgrade ' if upgrade else ''}{what}"
