"""What everything that holds native memory shares: a ``with`` block that closes it."""

from __future__ import annotations

from abc import abstractmethod
from types import TracebackType
from typing import Self


class Closing:
    """Leaving a ``with`` block calls ``close()``."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Gives back what is held. Closing twice is fine."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
