"""Names of inputs and results: patterns, templates, and the folders that a job keeps to."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Final, TypeAlias

from dala.arguments import SOME, Items
from dala.batch import storage
from dala.batch.storage import STATE, Facts, Roots
from dala.budget import checked
from dala.errors import ParameterError, did_you_mean, masked
from dala.typing import PathLike

#: One name or pattern, or several.
Patterns: TypeAlias = "PathLike | Sequence[PathLike]"

_MAGIC: Final = re.compile(r"[*?\[]")
_FIELD: Final = re.compile(r"\{([^{}]*)\}")
#: What a template may name, and what that is.
FIELDS: Final = {
    "stem": "the name without its suffix",
    "name": "the name with its suffix",
    "suffix": "the suffix with its dot",
    "path": "the folders below the pattern's root and the stem",
    "parent": "the folders below the pattern's root",
}


def patterns_of(given: Patterns, call: str) -> list[str]:
    """Return patterns as absolute names.

    Raises:
        ParameterError: it is no name, or there is none.
    """
    many = [given] if isinstance(given, str | os.PathLike) else given
    some = Items("a name, a pattern or a list of them", SOME)
    return [absolute(one, call, "pattern") for one in some.check(call, "pattern", many)]


def absolute(name: PathLike, call: str, argument: str) -> str:
    """Return a name that means the same on every machine that has the file."""
    if not isinstance(name, str | os.PathLike) or not os.fspath(name):
        raise ParameterError.invalid(call, argument, "a name or a pattern", name)
    text = os.fsdecode(name)
    if storage.shown(text) != text:
        expected = "a name without passwords and keys, which records would keep"
        advice = "Give them as options of storage: batch.storage.configure, --storage."
        raise ParameterError.invalid(call, argument, expected, text, advice)
    if storage.is_url(text):
        return text
    made = os.path.abspath(text.removeprefix("file://"))
    return made + "/" if text.endswith(("/", os.sep)) else made


def root_of(pattern: str) -> str:
    """Return the folder in which everything is that a pattern or template can name.

    >>> root_of("/v/**/*.mp4"), root_of("/v/a.mp4"), root_of("s3://films/{stem}.mp4")
    ('/v', '/v', 's3://films')
    """
    found = re.search(r"[*?\[{]", pattern)
    if found is None and pattern.endswith("/"):
        return pattern.rstrip("/") or "/"
    if found is None and not storage.is_url(pattern) and os.path.isdir(pattern):
        return pattern
    fixed = pattern if found is None else pattern[: found.start()]
    folder, slash, _ = fixed.rpartition("/")
    return folder if slash and not folder.endswith(("/", ":")) else fixed[: len(folder) + 1]


class Template:
    """The name of the result of each input, such as ``"clean/{stem}.mp4"``.

    A folder stands for the same folders and names in it.

    >>> template = Template("/clean/{path}.webp", "images")
    >>> template.name_of("/photos/a/b.jpg", "/photos")
    '/clean/a/b.webp'

    Raises:
        ParameterError: it has an unknown field.
    """

    def __init__(self, out: PathLike, call: str) -> None:
        text = absolute(out, call, "out")
        for name in _FIELD.findall(text):
            if name not in FIELDS:
                listed = ", ".join(f"{{{field}}}" for field in FIELDS)
                hint = did_you_mean(name, FIELDS) or f"There are {listed}."
                raise ParameterError(f"{call}: out has no field {{{name}}}. {hint}")
        folder = text.endswith("/") or (not storage.is_url(text) and os.path.isdir(text))
        self.text = storage.join(text, "{path}{suffix}") if folder else text
        self.root = root_of(self.text)
        self._call = call

    @property
    def keeps_folders(self) -> bool:
        """Whether inputs of different folders below one root have different results.

        >>> Template("/clean/{path}.webp", "images").keeps_folders
        True
        """
        found = _FIELD.findall(self.text)
        return "path" in found and {*found} <= {"path", "suffix"}

    def name_of(self, source: str, root: str) -> str:
        """Return the name of the result of an input.

        Raises:
            ParameterError: it would be outside of the template's folder.
        """
        inside = source[len(root) :].strip("/") if source.startswith(root) else source
        path = PurePosixPath(inside)
        values = {
            "stem": path.stem,
            "name": path.name,
            "suffix": path.suffix,
            "path": str(path.with_suffix("")),
            "parent": str(path.parent),
        }
        made = _FIELD.sub(lambda found: values[found[1]], self.text).replace("/./", "/")
        check_name(made, [self.root], self._call)
        return made


def check_name(name: str, roots: Sequence[str], call: str, *, writes: bool = False) -> str:
    """Return a name that is in one of some folders; links are followed for files to write.

    Raises:
        ParameterError: it is in none, or leads out of it.

    >>> check_name("/v/a.mp4", ["/v"], "videos")
    '/v/a.mp4'
    """
    _roots(tuple(roots)).check(call, name, writes=writes)
    return name


@lru_cache(maxsize=8)
def _roots(urls: tuple[str, ...]) -> Roots:
    return Roots(urls)


def find_files(
    patterns: Sequence[str], suffixes: frozenset[str], call: str
) -> Iterator[tuple[Facts, str]]:
    """Yield the files of patterns, each with the root of its pattern; a file once.

    Args:
        patterns: absolute names, folders or patterns.
        suffixes: the files of a folder that are taken.
        call: for messages.

    Raises:
        FileNotFoundError: a pattern matches nothing.
    """
    seen: set[int] | None = set() if len(patterns) > 1 else None
    for pattern in patterns:
        root, count = root_of(pattern), 0
        named = _MAGIC.search(pattern) is None and not pattern.endswith("/") and root != pattern
        for facts in checked(storage.listing(pattern), call):
            wanted = named or os.path.splitext(facts.name)[1].lower() in suffixes
            if not wanted or f"/{STATE}/" in facts.name:
                continue
            count += 1
            if seen is not None:
                key = hash(facts.name)
                if key in seen:
                    continue
                seen.add(key)
            yield facts, root
        if not count:
            raise FileNotFoundError(f"{call}: no file matches {masked(repr(pattern))}.")


def find_targets(
    patterns: Sequence[str], suffixes: frozenset[str], out: Template, call: str, what: str
) -> Iterator[tuple[Facts, str, str]]:
    """Yield the files of patterns, each with the root of its pattern and the name of its result.

    Args:
        patterns: absolute names, folders or patterns.
        suffixes: the files of a folder that are taken.
        out: the names of the results.
        call: for messages.
        what: what the files are, such as "videos".

    Raises:
        FileNotFoundError: a pattern matches nothing.
        ParameterError: a result would replace an input or another result.
    """
    seen: set[int] = set()
    apart, folder = out.keeps_folders and len(patterns) == 1, ""
    for facts, root in find_files(patterns, suffixes, call):
        if apart and (home := facts.name.rpartition("/")[0]) != folder:
            folder = home  # folders are listed one by one: memory does not grow with them
            seen.clear()
        target = out.name_of(facts.name, root)
        if target == facts.name:
            raise ParameterError(
                f"{call}: {facts.name!r} is an input and is not overwritten. Change out."
            )
        if hash(target) in seen:
            raise ParameterError(
                f"{call}: two {what} would become {target!r}. Use {{path}} or {{name}} in out."
            )
        seen.add(hash(target))
        yield facts, root, target


def digest(*parts: str) -> str:
    """Return a short name for a combination of texts.

    >>> digest("a", "b") == digest("a", "b") != digest("ab")
    True
    """
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
