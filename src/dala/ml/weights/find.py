"""Where weights are: a folder given by DALA_MODELS, then the cache, then pulled."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

_log = logging.getLogger("dala")


def cache_folder() -> Path:
    """The folder that pulled models are kept in."""
    if given := os.environ.get("DALA_CACHE_DIR"):
        return Path(given) / "models"
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library/Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "dala" / "models"


def folders() -> list[Path]:
    """The folders a model is looked for in, in order."""
    given = os.environ.get("DALA_MODELS", "")
    return [Path(p) for p in given.split(os.pathsep) if p] + [cache_folder()]


def find_weights(name: str) -> Path | None:
    """The file of a model, where it is on this machine."""
    for folder in folders():
        path = folder / f"{name}.onnx"
        if path.is_file():
            return path
    return None


def ensure_weights(name: str, pull: bool = True) -> Path:
    """The file of a model, fetched first where it is not on this machine."""
    from dala.errors import DalaError, ModelNotFound

    found = find_weights(name)
    if found is not None:
        return found
    looked = ", ".join(map(str, folders()))
    where = f"load_model: the weights of {name!r} are not in {looked}"
    if not pull:
        raise ModelNotFound(f"{where}. Fetch them: dala models pull {name}.")
    from dala.ml.models import find_model
    from dala.ml.weights.pull import pull as fetch

    spec = find_model(name)
    assert spec is not None
    _log.warning("dala: fetching %s from %s; license: %s", name, spec.origin, spec.license)
    try:
        return fetch(name)
    except DalaError as error:
        raise ModelNotFound(f"{where}, and could not be fetched: {error}") from None
