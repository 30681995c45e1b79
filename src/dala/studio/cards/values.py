"""Values of cards: JSON of a page, checked and loaded as filters take them."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final, cast

import numpy as np

from dala import forks
from dala.errors import DalaError, ParameterError
from dala.gpu.compute.kernels.filter import FilterParam
from dala.media.filters.plans import Filter, FilterValue, check
from dala.studio.cards.card import Card
from dala.studio.catalogue.parameters import Json, kind_of
from dala.studio.folders import Folders
from dala.untrusted.opened import Opened

#: The most numbers of a list.
_LONGEST: Final = 4096
#: The largest number; integers may be larger, and are refused as infinity is.
_MOST: Final = sys.float_info.max
#: Files that are kept loaded.
_KEPT: Final = 16


class LoadedFiles:
    """Pictures, tables and maps that cards name, loaded once and again when the file changes.

    >>> LoadedFiles(Folders([]), 1000).max_pixels
    1000
    """

    def __init__(self, folders: Folders, max_pixels: int) -> None:
        self.folders = folders
        self.max_pixels = max_pixels
        self._lock = forks.lock()
        self._made: OrderedDict[tuple[str, str, int], FilterValue] = OrderedDict()

    def load(self, kind: str, file: Opened) -> FilterValue:
        """Return a "picture" as pixels, a "lut" as a color table, or a "map" as an array.

        Raises:
            OSError, DalaError: it cannot be read.
        """
        key = kind, str(file.name), file.stat().st_mtime_ns
        with self._lock:
            if key in self._made:
                self._made.move_to_end(key)
                return self._made[key]
        made = self._read(kind, file)
        with self._lock:
            self._made[key] = made
            while len(self._made) > _KEPT:
                self._made.popitem(last=False)
        return made

    def _read(self, kind: str, file: Opened) -> FilterValue:
        from dala.media.files import load, load_array
        from dala.media.filters.luts import load_lut

        match kind:
            case "lut":
                return load_lut(file)
            case "map":
                return load_array(file)
        return np.asarray(load(file, self.max_pixels))


def required(card: Card) -> list[str]:
    """Return the parameters that a card still needs.

    >>> required(Card("c1", "filter", "resize"))
    ['size']
    """
    return [
        p.name for p in card.parameters.values() if p.required and card.params.get(p.name) is None
    ]


def loaded(card: Card, files: LoadedFiles) -> dict[str, FilterValue]:
    """Return a card's values as its filter takes them, with files loaded.

    Raises:
        ParameterError: a value has the wrong form, or a file cannot be read.
    """
    known = card.parameters
    return {
        name: _value(card.name, known[name], value, files)
        for name, value in card.params.items()
        if name in known and value is not None
    }


def checked(card: Card, files: LoadedFiles) -> Mapping[str, FilterValue]:
    """Return a card's loaded values, after its filter has accepted them.

    Raises:
        ParameterError: a value is refused.
    """
    values = loaded(card, files)
    if card.kind == "model":
        for name, p in card.parameters.items():
            if p.type == "choice" and values.get(name, p.default) not in p.choices:
                expected = f"one of {', '.join(p.choices)}"
                raise ParameterError.invalid(card.name, name, expected, values[name])
        return values
    if not required(card):
        try:
            check(link_of(card, values), card.name)
        except KeyError as error:  # an unknown parameter is also a KeyError
            raise ParameterError(str(error.args[0] if error.args else error)) from None
    return values


def link_of(card: Card, values: Mapping[str, FilterValue]) -> Filter:
    """Return a filter or kernel card as an item of a list of filters."""
    if card.kind == "filter":
        return card.name, values
    kernel = card.kernel.kernel
    if kernel is None:
        raise ParameterError(f"{card.name}: {card.kernel.diagnostics[0].message}")
    return kernel, values


def _value(call: str, p: FilterParam, value: Json, files: LoadedFiles) -> FilterValue:
    kind = kind_of(p)
    if kind in ("lut", "map") or (kind == "picture" and isinstance(value, str)):
        file = files.folders.open(value, call, argument=p.name)
        try:
            return files.load(kind, file)
        except DalaError as error:
            raise ParameterError(str(error), call=call, argument=p.name) from error
        except OSError as error:
            text = f"{call}: {p.name}: cannot read {file.name.name!r}: {error.strerror or error}."
            raise ParameterError(text, call=call, argument=p.name) from error
    if kind == "curve":
        return _points(call, p.name, value)
    if isinstance(value, bool):
        if kind not in ("bool", "choice"):
            raise ParameterError.invalid(call, p.name, "a number", value)
        return value
    if isinstance(value, int | float):
        return _finite(call, p.name, value)
    if isinstance(value, str):
        if kind != "choice":
            raise ParameterError.invalid(call, p.name, "numbers", value)
        return value
    if isinstance(value, list) and len(value) <= _LONGEST:
        missing = kind == "size"  # one side may be chosen by the filter
        made = [None if v is None and missing else _finite(call, p.name, v) for v in value]
        return cast("FilterValue", tuple(made))
    raise ParameterError.invalid(call, p.name, "a number, a word or a list of numbers", value)


def _finite(call: str, name: str, value: Json) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _MOST:
        raise ParameterError.invalid(call, name, "a number", value)
    return value


def _points(call: str, name: str, value: Json) -> list[tuple[float, float]]:
    if not isinstance(value, list) or len(value) > _LONGEST:
        raise ParameterError.invalid(call, name, "a list of [x, y]", value)
    made: list[tuple[float, float]] = []
    for item in value:
        if not isinstance(item, list) or len(item) != 2:
            raise ParameterError.invalid(call, name, "a list of [x, y]", item)
        made.append((_finite(call, name, item[0]), _finite(call, name, item[1])))
    return made
