"""What a fuzz target is, and what counts as a failure of one."""

from __future__ import annotations

import hashlib
import random
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from dala.errors import DalaError, printable
from tests.fuzz.mutate import mutate

CORPUS = Path(__file__).parent / "corpus"


class Failed(Exception):
    """An input that ended in neither a result nor one of our errors, or in two different ways."""


class Target(ABC):
    """Something that reads bytes from strangers.

    ``read`` returns a description of what it read, equal for equal input, or raises a DalaError.
    """

    name: str
    #: Pieces that the format is made of.
    words: Sequence[bytes] = ()
    #: Errors besides DalaError that the target's callers handle.
    errors: tuple[type[Exception], ...] = ()
    #: Bytes of address space that one input may take beyond what the process has.
    memory = 2 << 30

    @abstractmethod
    def seeds(self) -> list[bytes]:
        """Return small intact inputs."""

    @abstractmethod
    def read(self, data: bytes) -> object:
        """Read one input."""

    @cached_property
    def corpus(self) -> list[bytes]:
        """Intact inputs, and inputs that once failed."""
        return [*self.seeds(), *(path.read_bytes() for path in self.kept())]

    def kept(self) -> list[Path]:
        """Return the files of inputs that once failed."""
        return sorted((CORPUS / self.name).glob("*"))

    def input(self, seed: int, number: int) -> bytes:
        """Return the input of a number."""
        rng = random.Random(f"{self.name}:{seed}:{number}")
        return mutate(rng, rng.choice(self.corpus), self.corpus, self.words)

    def outcome(self, data: bytes) -> tuple[str, str]:
        """Return "read" with a description, or "refused" with the message.

        Raises:
            Failed: it ended in another exception, or its message cannot be printed.
        """
        try:
            with warnings.catch_warnings(action="ignore"):
                found = self.read(data)
        except (DalaError, *self.errors) as error:
            message = str(error)
            if printable(message) != message:
                raise Failed(f"the message of {type(error).__name__} cannot be printed") from error
            return "refused", f"{type(error).__name__}: {message}"
        except Failed:
            raise
        except Exception as error:
            raise Failed(f"{type(error).__name__}: {error}") from error
        return "read", repr(found)

    def check(self, data: bytes, *, twice: bool = True) -> str:
        """Return how an input ends; raise Failed if it does so wrongly or not twice alike."""
        first = self.outcome(data)
        if twice and self.outcome(data) != first:
            raise Failed(f"the second time it ends otherwise than in {first}")
        return first[0]

    def keep(self, data: bytes) -> Path:
        """Save an input that failed, and return its file."""
        path = CORPUS / self.name / hashlib.sha256(data).hexdigest()[:16]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path


def digest(data: bytes) -> str:
    """Return a short name for bytes, to compare results by."""
    return hashlib.sha256(data).hexdigest()[:16]
