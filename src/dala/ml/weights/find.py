"""Weight files: in the folders of DALA_MODELS, in this package, in the cache, or downloaded."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Final

from dala import folders as user_folders
from dala.errors import DalaError, ModelNotFound
from dala.trust import distrust

_log = logging.getLogger("dala")

#: Small models that come with the package, with their licenses.
SHIPPED: Final = Path(__file__).with_name("shipped")


def cache_folder() -> Path:
    """Return the folder for downloaded models."""
    folder = user_folders.cache_folder("models")
    if folder is None:
        raise ModelNotFound("models: there is no home folder. Set DALA_CACHE_DIR to a folder.")
    return folder


#: Caches whose refusal was logged.
_refused: set[Path] = set()


def folders() -> list[Path]:
    """Return the folders to search for models, in order.

    A cache that other users can write to is left out, and that is logged once. The folders of
    DALA_MODELS were named by the user.
    """
    given = [Path(p) for p in os.environ.get("DALA_MODELS", "").split(os.pathsep) if p]
    given.append(SHIPPED)
    cache = cache_folder()
    problem = distrust(str(cache))
    if not problem:
        return [*given, cache]
    if cache not in _refused:
        _refused.add(cache)
        _log.warning(
            "dala: models in %s are not used: %s. Run `chmod go-w` on it, or set DALA_CACHE_DIR to "
            "another folder, or DALA_CACHE_TRUST=1 if you trust everyone who can write there.",
            cache,
            problem,
        )
    return given


def find_weights(name: str) -> Path | None:
    """Return the file of a model, or None if it is not on this machine."""
    if os.path.basename(name) != name:  # a path is no name, and leads out of the folders
        return None
    for folder in folders():
        path = folder / f"{name}.onnx"
        if path.is_file():
            return path
    return None


def ensure_weights(name: str, pull: bool = True) -> Path:
    """Return the file of a model, downloading it first if ``pull``."""
    found = find_weights(name)
    if found is not None:
        return found
    looked = ", ".join(str(folder) for folder in folders() if folder != SHIPPED)
    where = f"load_model: no weights of {name!r} in {looked}"
    if not pull:
        raise ModelNotFound(f"{where}. Download them: dala models pull {name}.")
    from dala.ml.models import find_model
    from dala.ml.weights.pull import DownloadBar
    from dala.ml.weights.pull import pull as fetch

    spec = find_model(name)
    assert spec is not None
    _log.warning("dala: downloading %s from %s; license: %s", name, spec.origin, spec.license)
    try:
        with DownloadBar(name) as bar:
            return fetch(name, bar)
    except DalaError as error:
        raise ModelNotFound(f"{where}, and the download failed: {error}") from error
