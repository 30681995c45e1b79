"""Places that strangers may name files in."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from dala.errors import ParameterError
from dala.typing import PathLike
from dala.untrusted import beneath
from dala.untrusted.beneath import Outside
from dala.untrusted.opened import Opened, opened

#: The longest path, in characters.
_LONGEST: Final = 4096
#: Links that the name of a file to write may lead over.
_LINKS: Final = 40


class NotThere(ParameterError):
    """The name leads to no such file inside of the folders."""


class NewFile(os.PathLike[str]):
    """A file to write: its folder is open, so that no other one is written to.

    As a path it leads to the name in that very folder. ``name`` is its path for people.
    """

    def __init__(self, folder: Opened, last: str) -> None:
        self._folder, self._last = folder, last
        self.name = folder.name / last

    def __fspath__(self) -> str:
        return os.path.join(self._folder, self._last)

    def __repr__(self) -> str:
        return f"<NewFile {str(self.name)!r}>"


class Place:
    """Folders in which strangers may name files: text goes in, an open file comes out.

    Args:
        roots: the folders.
        advice: of the error, what to do about a name that leads elsewhere.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = Path(folder, "note.txt").write_text("hello")
    >>> Place([folder]).open("note.txt", "example").content(100, "example")
    b'hello'
    >>> Place([folder]).open("../note.txt", "example") # doctest: +ELLIPSIS
    Traceback (most recent call last):
    dala.errors.ParameterError: example: path must be in an allowed folder (...), got '../note.txt'.
    """

    def __init__(self, roots: Iterable[PathLike], advice: str = "") -> None:
        #: The folders, without links, as they were given.
        self.roots: tuple[Path, ...] = tuple(dict.fromkeys(Path(r).resolve() for r in roots))
        #: Folders that are allowed but not listed, such as that of uploads.
        self.hidden: tuple[Path, ...] = ()
        #: Files and addresses outside that are allowed.
        self.trusted: frozenset[str] = frozenset()
        self._advice = advice

    def open(
        self, text: object, call: str, *, argument: str = "path", base: PathLike | None = None
    ) -> Opened:
        """Open a file by the name that a stranger gave it.

        Args:
            text: the name.
            call: the call, for errors.
            argument: its argument, for errors.
            base: the folder that the name is relative to; by default the first one.

        Raises:
            ParameterError: the name is none, it leads outside of the folders, or there is no such
                regular file.
        """
        return self._find(self._absolute(text, call, argument, base), text, call, argument)

    def folder(self, text: object, call: str, *, argument: str = "path") -> Opened:
        """Open a folder by the name that a stranger gave it.

        Raises:
            ParameterError: it leads outside of the folders, or there is no such folder.
        """
        path = self._absolute(text, call, argument, None)
        return self._find(path, text, call, argument, folder=True)

    def target(self, text: object, call: str, *, argument: str = "path") -> NewFile:
        """Return a file to write, by the name that a stranger gave it; its folder exists.

        Raises:
            ParameterError: it leads outside of the folders, or no file can be there.
        """
        path = self._absolute(text, call, argument, None)
        for _ in range(_LINKS):
            head, last = os.path.split(path)
            if last in ("", os.curdir, os.pardir):
                break
            try:
                found = self._find(head, text, call, argument, folder=True)
            except NotThere:
                break
            made = NewFile(found, last)
            try:
                path = os.path.join(found.name, os.readlink(made))
            except OSError:  # no link, which is usual
                if os.path.lexists(made) and not os.path.isfile(made):
                    break
                return made
        raise ParameterError(
            f"{call}: no file can be written at {text!r}. Name a file in a folder that exists.",
            call=call,
            argument=argument,
        )

    def allow_address(self, text: str, call: str, *, argument: str = "source") -> None:
        """Refuse an address, unless it is trusted.

        Raises:
            ParameterError: it is refused.
        """
        if text not in self.trusted:
            advice = "Scenes of pages cannot open addresses."
            raise ParameterError.invalid(call, argument, "a file", text, advice)

    def _absolute(self, text: object, call: str, argument: str, base: PathLike | None) -> str:
        """Return a name as an absolute path; nothing in it is resolved."""
        if not isinstance(text, str) or not text or len(text) > _LONGEST or not _is_name(text):
            expected = "the path of a file, without control characters"
            raise ParameterError.invalid(call, argument, expected, text)
        start = base if base is not None else next(iter(self.roots), Path(os.sep))
        return os.path.join(os.path.abspath(start), text)

    def _find(
        self, path: str, text: object, call: str, argument: str, *, folder: bool = False
    ) -> Opened:
        roots = frozenset(map(str, (*self.roots, *self.hidden)))
        what = "folder" if folder else "file"
        try:
            return opened(beneath.find(path, roots, self.trusted, folder=folder))
        except Outside:
            listed = ", ".join(map(str, self.roots)) or "none"
            expected = f"in an allowed folder ({listed})"
            raise ParameterError.invalid(call, argument, expected, text, self._advice) from None
        except FileNotFoundError:
            problem = f"there is no {what} {text!r}"
        except OSError as error:
            problem = f"{text!r} cannot be opened as a {what}: {error.strerror or error}"
        raise NotThere(f"{call}: {problem}.", call=call, argument=argument)


def _is_name(text: str) -> bool:
    """Return whether a file can have a name, and people can read it on one line."""
    try:
        os.fsencode(text)
    except UnicodeError:
        return False
    return not any(ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u2028\u2029" for c in text)
