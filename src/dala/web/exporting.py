"""Export a chain as a folder with a page, or as one HTML file."""

from __future__ import annotations

import base64
import html
import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources import files as package_files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from dala.arguments import Flag, Items, Text, checked_path, refuse_url
from dala.arguments.paths import missing_file
from dala.errors import ParameterError, ShapeError
from dala.extensions import write_whole
from dala.gpu.compute import Pipeline
from dala.gpu.compute.lang.source import from_text
from dala.gpu.compute.passes.source import shader_from
from dala.gpu.compute.runnable import Runnable
from dala.media.filters.pipeline import FramePipeline
from dala.media.filters.plans import Filter
from dala.media.images import read
from dala.media.parts import write_folder
from dala.media.pictures.pixels import as_bytes
from dala.png import encode_png
from dala.typing import ImageLike, NDArray, PathLike
from dala.web.controls import Ranges, check_ranges
from dala.web.document import ChainWriter, Document
from dala.web.explore import WebPlan, explore
from dala.web.sources import FilterSource, PipelineSource, WebSource

if TYPE_CHECKING:
    from dala.media.scene.nodes.effect import EffectNode
    from dala.media.scene.scene import Scene

#: Formats that every browser shows, by suffix.
_SHOWN: Final = {".jpg": "jpg", ".jpeg": "jpg", ".png": "png", ".webp": "webp"}
_MIME: Final = {"jpg": "image/jpeg", "png": "image/png", "webp": "image/webp"}
_PLAIN: Final = "without WebGPU the page shows the picture as it is"
_QUALITY: Final = 88
#: The longer side of a still, in pixels.
_MOST: Final = 960


class PageImage(NamedTuple):
    """The file of a picture."""

    data: bytes
    #: "jpg", "png" or "webp".
    kind: str

    @property
    def mime(self) -> str:
        """The media type."""
        return _MIME[self.kind]


def first_picture(picture: ImageLike | PathLike | None, call: str) -> PageImage:
    """Return the picture that a page shows at first; a photograph by default."""
    if picture is None:
        photos = resources.files("dala.samples").joinpath("photos")
        return PageImage(photos.joinpath("coffee.jpg").read_bytes(), "jpg")
    if isinstance(picture, str | os.PathLike):
        refuse_url(call, "picture", picture)
        path = Path(os.fspath(picture))
        kind = _SHOWN.get(path.suffix.lower())
        if kind is None:
            known = ", ".join(_SHOWN)
            raise ParameterError.invalid(call, "picture", f"a file that ends in {known}", str(path))
        try:
            return PageImage(path.read_bytes(), kind)
        except FileNotFoundError:
            raise missing_file(path, call) from None
    return _encoded(np.asarray(read(picture, None, None, call).pixels))


def still(picture: PageImage, source: WebSource, device: str) -> tuple[PageImage, str]:
    """Return the chain's result for a picture, and a note if it could not be made."""
    if not isinstance(source, FilterSource):
        return picture, _PLAIN
    if find_spec("PIL") is None:
        return picture, f"{_PLAIN}: Pillow is not installed"
    try:
        return _encoded(_result(picture, source, device)), ""
    except (ParameterError, ShapeError) as error:  # a box that is larger than the picture, say
        return picture, f"{_PLAIN}: {error}"


def _result(picture: PageImage, source: FilterSource, device: str) -> NDArray:
    from PIL import Image

    with Image.open(io.BytesIO(picture.data)) as opened:
        image = opened.convert("RGBA")
    if source.size is not None:
        image = image.resize(source.size)
    else:
        image.thumbnail((_MOST, _MOST))
    with FramePipeline(image.width, image.height, device=device) as pipeline:
        return np.asarray(pipeline.process(np.asarray(image), source.filters))


def _encoded(pixels: NDArray) -> PageImage:
    pixels = as_bytes(pixels)
    opaque = pixels.ndim == 2 or pixels.shape[2] < 4 or bool((pixels[..., 3] == 255).all())
    if not opaque or find_spec("PIL") is None:
        return PageImage(encode_png(pixels), "png")
    from PIL import Image

    file = io.BytesIO()
    plain = pixels if pixels.ndim == 2 else pixels[..., :3].squeeze()
    Image.fromarray(np.ascontiguousarray(plain)).save(file, "JPEG", quality=_QUALITY)
    return PageImage(file.getvalue(), "jpg")


#: What can be exported: filters, a kernel, a pipeline of buffers, the effects of a scene, or the
#: path of a JSON file with filters or a scene.
Exportable: TypeAlias = (
    "Sequence[Filter] | Runnable | Pipeline | FramePipeline | Scene | EffectNode | PathLike"
)

_CALL: Final = "export_web"


@dataclass(frozen=True)
class Export:
    """An exported page.

    Attributes:
        path: the folder, or the HTML file.
        files: the files that were written, relative to the folder.
        plan: the plans.

    Example::

        made = dala.web.export(["blur", "sepia"], "page")
        print(made.path, made.notes)
    """

    path: Path
    files: tuple[str, ...]
    plan: WebPlan

    @property
    def notes(self) -> list[str]:
        """Parameters that are fixed or left out, each with the reason."""
        return self.plan.notes


def plan(
    chain: Exportable,
    *,
    node: str | None = None,
    sliders: Ranges | None = None,
    yuv: bool = False,
) -> WebPlan:
    """Return the plans of a chain, as :func:`export` writes them.

    >>> plan(["invert"]).dispatches
    1
    """
    found, _, notes = _given(chain, node, None, shown=False)
    made = explore(_source(found, sliders, yuv))
    made.notes[:0] = notes
    return made


def export(
    chain: Exportable,
    folder: PathLike,
    *,
    title: str | None = None,
    picture: ImageLike | PathLike | None = None,
    node: str | None = None,
    sliders: Ranges | None = None,
    yuv: bool = False,
    one_file: bool | None = None,
    device: str = "cpu",
) -> Export:
    """Export a chain as a web page that runs on the visitor's GPU.

    The folder has ``index.html``, the page; ``chain.json`` with the plans; the shaders as WGSL; and
    ``dala.js``, the runtime, which is also an ES module. Nothing is written if the chain is
    refused.

    Args:
        chain: filters such as ``[("blur", {"radius": 4}), "invert"]``, a kernel whose first input
            is a picture, a Pipeline, a FramePipeline that has processed a frame, a Scene with
            effects, one effect of it, or the path of a JSON file with filters or a scene.
        folder: where to write; with ``one_file`` the path of the HTML file.
        title: of the page; the names of the filters by default.
        picture: that the page shows at first; by default a photograph, and for a scene file the
            scene without the effects.
        node: of a scene: the id of an effect, or of a node with effects. Needed if the scene has
            effects in several places.
        sliders: the ranges of controls by name, such as ``{"sigma": (0.5, 20)}``. None means the
            declared range; it also makes a control of a parameter that is none by itself, such as
            ``{"border": None}``.
        yuv: also export plans for video frames in NV12 and I420, converted as Dala does it.
        one_file: write one HTML file; by default if the path ends in ``.html``.
        device: that makes the still picture for browsers without WebGPU.

    Returns:
        The path, the files and the plans.

    Raises:
        ParameterError: the chain has a model, an effect has what pages lack, such as an opacity, or
            a parameter is refused.
        SceneFileError: the scene file has mistakes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = export([("blur", {"radius": 2})], folder)
    ...     sorted(made.files)[:3]
    ['chain.json', 'dala.d.ts', 'dala.js']
    """
    path = checked_path(_CALL, "folder", folder)
    Flag("True, False or None").check_optional(_CALL, "one_file", one_file)
    single = path.suffix.lower() in (".html", ".htm") if one_file is None else one_file
    if path.exists() and path.is_dir() == single:
        expected = "the path of a file" if single else "a folder"
        raise ParameterError.invalid(_CALL, "folder", expected, str(path))
    found, own, notes = _given(chain, node, device, shown=picture is None)
    shown = first_picture(own if picture is None else picture, _CALL)
    source = _source(found, sliders, yuv)
    made = explore(source)
    made.notes[:0] = notes
    result, note = still(shown, source, device)
    made.notes.extend([note] if note else [])
    document, files = ChainWriter(made, inline=single).write(_title(title, made))
    if single:
        page = _single_page(document, shown, result)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, page)
        return Export(path, (path.name,), made)
    document |= {"picture": f"picture.{shown.kind}", "still": f"still.{result.kind}"}
    files |= {
        **{name: _static(name) for name in ("dala.js", "dala.d.ts")},
        document["picture"]: shown.data,
        document["still"]: result.data,
        "chain.json": json.dumps(document, separators=(",", ":")).encode(),
        "index.html": _page(document),
    }
    write_folder(path, files)
    return Export(path, tuple(sorted(files)), made)


def read_chain(path: PathLike) -> list[Filter]:
    """Read filters from a JSON file.

    The file has a list, or an object with a list "filters": names, ``["blur", {"radius": 3}]`` or
    ``{"filter": "blur", "radius": 3}``, as ``dala filter --json`` prints them. Or it is a preset of
    the studio.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "chain.json")
    ...     _ = file.write_text('["invert", {"filter": "blur", "radius": 3}]')
    ...     read_chain(file)
    ['invert', ('blur', {'radius': 3})]
    """
    where = os.fspath(path)
    refuse_url(_CALL, "path", where)
    try:
        found = json.loads(Path(where).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise missing_file(where, _CALL) from None
    except (ValueError, RecursionError) as error:
        raise ParameterError(f"{_CALL}: {where!r} is not JSON: {error}.") from None
    if isinstance(found, dict) and found.get("format") == "dala-chain":
        raise ParameterError(
            f"{_CALL}: {where!r} is an exported chain. Give the filters that it was made from.",
        )
    items = found.get("filters", found.get("chain")) if isinstance(found, dict) else found
    if not isinstance(items, list):
        raise ParameterError.invalid(_CALL, "chain", "a list of filters in the file", items)
    on = [i for i in items if not (isinstance(i, dict) and i.get("on") is False)]
    return [_item(item) for item in on]


def _item(item: Any) -> Filter:
    if isinstance(item, str):
        return item
    if isinstance(item, dict) and isinstance(item.get("filter"), str):
        nested = item.get("params")
        rest = nested if isinstance(nested, dict) else item
        left_out = ("filter", "params", "on")
        return item["filter"], {k: _value(v) for k, v in rest.items() if k not in left_out}
    if isinstance(item, dict) and isinstance(item.get("kernel"), str):
        params = item.get("params") or {}
        made = shader_from(from_text(item["kernel"], "kernel"))
        return made, {k: _value(v) for k, v in params.items()}
    if isinstance(item, dict) and "model" in item:
        raise ParameterError(f"{_CALL}: models are not part of exported pages: {item['model']!r}.")
    if isinstance(item, list) and len(item) == 2 and isinstance(item[1], dict):
        return item[0], {k: _value(v) for k, v in item[1].items()}
    raise ParameterError.invalid(_CALL, "chain", 'filters such as ["blur", {"radius": 3}]', item)


def _value(value: Any) -> Any:
    numbers = isinstance(value, list) and all(isinstance(n, int | float) for n in value)
    return tuple(value) if numbers else value


def _given(
    chain: Exportable, node: str | None, device: str | None, *, shown: bool
) -> tuple[Exportable, ImageLike | None, Sequence[str]]:
    """Return the effects of a scene as filters, or another chain; its picture, and notes.

    If ``shown``, a scene file is also rendered without them: the first picture of its page.
    """
    from dala.media.scene.nodes.effect import EffectNode
    from dala.media.scene.scene import Scene
    from dala.web.scenes import is_scene_file, read_effects, scene_effects

    Text("the id of a node").check_optional(_CALL, "node", node)
    if isinstance(chain, Scene | EffectNode):
        found = scene_effects(chain, node, _CALL)
        return found.filters, None, found.notes
    if isinstance(chain, str | os.PathLike) and is_scene_file(chain):
        found, picture = read_effects(chain, node, _CALL, device, shown)
        return found.filters, picture, found.notes
    if node is not None:
        raise ParameterError.invalid(
            _CALL, "node", "None for what is not a scene", node, "Only scenes have nodes."
        )
    return chain, None, ()


def _source(chain: Exportable, sliders: Ranges | None, yuv: bool) -> WebSource:
    source = _made(chain, {}, yuv)
    ranges = check_ranges(sliders, (c.param for c in source.controls), _CALL)
    return _made(chain, ranges, yuv) if ranges else source


def _made(chain: Exportable, ranges: Ranges, yuv: bool) -> WebSource:
    if isinstance(chain, Pipeline):
        return PipelineSource(chain, _CALL, ranges)
    if isinstance(chain, FramePipeline):
        chain = chain.last_filters
    elif isinstance(chain, Runnable):
        chain = [chain]
    elif isinstance(chain, str | os.PathLike):
        chain = read_chain(chain)
    filters = Items("a list of filters, a kernel or a pipeline").check(_CALL, "chain", chain)
    return FilterSource(filters, _CALL, ranges, yuv)


def _title(title: str | None, made: WebPlan) -> str:
    Text("a str").check_optional(_CALL, "title", title)
    return made.name if title is None else title.encode(errors="replace").decode()


def _static(name: str) -> bytes:
    """Return a file of the runtime."""
    return package_files("dala.web").joinpath("static", name).read_bytes()


def _page(document: Document) -> bytes:
    element = (
        f'<dala-chain src="chain.json" fill><img src="{document["still"]}" alt=""></dala-chain>'
    )
    script = '<script type="module" src="dala.js"></script>'
    return _filled(document, element, script)


def _single_page(document: Document, shown: PageImage, result: PageImage) -> bytes:
    for name, picture in (("picture", shown), ("still", result)):
        encoded = base64.b64encode(picture.data).decode()
        document[name] = f"data:{picture.mime};base64,{encoded}"
    # "<" could end the script element.
    content = json.dumps(document, separators=(",", ":")).replace("<", "\\u003c")
    element = (
        f'<script type="application/json" id="chain">{content}</script>\n'
        '<dala-chain src="#chain" fill></dala-chain>'
    )
    runtime = _static("dala.js").decode()
    assert "</script" not in runtime
    return _filled(document, element, f'<script type="module">{runtime}</script>')


def _filled(document: Document, element: str, script: str) -> bytes:
    text, title = _static("page.html").decode(), html.escape(document["title"])
    for name, value in (("$title", title), ("$element", element), ("$script", script)):
        text = text.replace(name, value)
    return text.encode()
