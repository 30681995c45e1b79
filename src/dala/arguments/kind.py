"""The base of all kinds of arguments: checks, texts of command lines, words, controls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Final, Generic, TypeVar

from dala.errors import ParameterError

T = TypeVar("T")
#: What a kind raises for a value that it does not accept. A memoryview of several axes has no
#: items: NotImplementedError.
_REFUSED: Final = (TypeError, ValueError, ZeroDivisionError, OverflowError, NotImplementedError)


class ArgumentKind(ABC, Generic[T]):
    """A kind of argument. Subclasses say what is accepted: ``expected`` and ``accept``."""

    #: What errors say that a value must be.
    expected: str = "a value"
    #: The name of the value in the help of a command; "" for that of the option.
    metavar: ClassVar[str] = ""

    @abstractmethod
    def accept(self, value: Any) -> T:
        """Return the value in its final form; raise TypeError or ValueError for others."""

    def read(self, text: str) -> Any:
        """Return the value that a text stands for; raise ValueError for others."""
        return text

    def advice(self, value: Any) -> str:
        """Return advice about a refused value; "" for none."""
        return ""

    def check(self, call: str, argument: str, value: Any) -> T:
        """Return an accepted value in its final form.

        Raises:
            ParameterError: it is not accepted; the text names the call and the argument.
        """
        try:
            return self.accept(value)
        except _REFUSED:
            advice = self.advice(value)
        raise ParameterError.invalid(call, argument, self.expected, value, advice)

    def check_optional(self, call: str, argument: str, value: Any) -> T | None:
        """Return an accepted value in its final form; None for None."""
        return None if value is None else self.check(call, argument, value)

    def parse(self, text: str) -> T:
        """Return the value of a text of the command line, for argparse."""
        try:
            return self.accept(self.read(text))
        except _REFUSED:
            from argparse import ArgumentTypeError

            raise ArgumentTypeError(f"must be {self.expected}, got {text!r}") from None

    def strict(self) -> ArgumentKind[T]:
        """Return the kind for strangers, who may choose from what is known only."""
        return self

    def card(self) -> dict[str, Any]:
        """Return the description of its control on a page, as JSON."""
        return {"type": "text"}
