"""A chain that is ready to run: filters and kernels fused, models between them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Final

import numpy as np

from dala.budget import Limits
from dala.errors import DalaError, masked
from dala.gpu.compute.call.instant import BEGINNING, Instant
from dala.gpu.compute.runnable import Runnable
from dala.media.filters.pipeline import FramePipeline
from dala.media.filters.plans import Filter, FilterValue
from dala.resources import Closing
from dala.studio.cards.card import Card
from dala.studio.cards.models import Findings, ModelRunner, load
from dala.studio.cards.values import LoadedFiles, checked, link_of, required
from dala.typing import ImageLike, NDArray
from dala.untrusted.opened import readable

#: Frames may be of any size that fits into memory.
_LARGEST: Final = 1 << 20
#: What kernels may ask for that is another in each frame.
_MOVING: Final = ("time", "frame", "date")
#: Models that are kept loaded.
_MODELS: Final = 4


@dataclass(frozen=True)
class CardProblem:
    """Why a card is left out of the chain.

    >>> CardProblem("c1", "needs a lut").card
    'c1'
    """

    card: str
    text: str


@dataclass(frozen=True)
class ReadyCard:
    """A card that is ready: an item of a list of filters, or a model."""

    card: str
    filter: Filter | None
    model: ModelRunner | None = None

    @property
    def moves(self) -> bool:
        """True if results differ from frame to frame, though nothing is changed."""
        kernel = self.filter[0] if isinstance(self.filter, tuple) else self.filter
        if not isinstance(kernel, Runnable):
            return False
        return kernel.remembers or any(role in _MOVING for _, role in kernel.roles)


class ChainRunner(Closing):
    """Prepares chains and runs them on frames; one thread at a time.

    Args:
        files: the files that cards may name.
        device: the device; the current one by default.
        bounds: what one picture may take; nothing is bounded by default.
    """

    def __init__(
        self, files: LoadedFiles, device: str | None, bounds: Limits | None = None
    ) -> None:
        self._files = files
        self._bounds = bounds or Limits()
        self._pipeline = FramePipeline(_LARGEST, _LARGEST, device=device)
        self._single = FramePipeline(_LARGEST, _LARGEST, device=device)
        self._models: dict[str, ModelRunner] = {}
        #: What `prepare_ahead` has made.
        self._ahead: FramePipeline | None = None
        #: What models found in the last picture, by card.
        self.found: dict[str, Findings] = {}

    @property
    def device(self) -> str:
        """The device that chains run on."""
        return self._pipeline.device

    @property
    def passes(self) -> int:
        """Passes over memory of the last list of filters."""
        return self._pipeline.passes

    # preparing --------------------------------------------------------------------------------
    def prepare(self, cards: Sequence[Card]) -> tuple[list[ReadyCard], list[CardProblem]]:
        """Return the cards that can run, in order, and the problems of the others."""
        links: list[ReadyCard] = []
        problems: list[CardProblem] = []
        for card in cards:
            if not card.on:
                continue
            try:
                if needs := required(card):
                    listed = " and ".join(needs)
                    problems.append(CardProblem(card.id, f"{card.name}: {listed} must be set."))
                    continue
                links.append(self._link(card, checked(card, self._files)))
            except (DalaError, OSError, ValueError, MemoryError) as error:
                problems.append(CardProblem(card.id, describe_error(error)))
        return links, problems

    def _link(self, card: Card, values: Mapping[str, FilterValue]) -> ReadyCard:
        if card.kind != "model":
            return ReadyCard(card.id, link_of(card, values))
        key = json.dumps([card.name, dict(card.params)], sort_keys=True)
        found = self._models.pop(key, None)
        if found is None:
            while len(self._models) >= _MODELS:
                self._models.pop(next(iter(self._models))).close()
            found = load(card.name, card.params, self._pipeline.device)
        self._models[key] = found
        return ReadyCard(card.id, None, found)

    def prepare_ahead(self, picture: ImageLike, links: Sequence[ReadyCard]) -> None:
        """Compile a chain without models on another thread; `run` goes on with its own."""
        made = FramePipeline(_LARGEST, _LARGEST, device=self.device)
        with suppress(Exception), self._bounds:  # `run` meets the error again
            made.process(picture, [link.filter for link in links if link.filter is not None])
        self._ahead = made

    def take_ahead(self) -> None:
        """Let `run` use what `prepare_ahead` has made."""
        if self._ahead is not None:
            self._pipeline.close()
            self._pipeline, self._ahead = self._ahead, None

    # running ----------------------------------------------------------------------------------
    def run(
        self, picture: ImageLike, links: Sequence[ReadyCard], moment: Instant | None = None
    ) -> ImageLike:
        """Return the result of a chain for a picture; neighboring filters are one fused list.

        Kernels get the time and the frame's number of ``moment``.

        Raises:
            CommandTimeout, LimitExceeded: it takes more than the bounds.
        """
        with self._bounds:
            return self._run(picture, links, moment or BEGINNING)

    def _run(self, picture: ImageLike, links: Sequence[ReadyCard], moment: Instant) -> ImageLike:
        self.found = {}
        for group, card, model in _steps(links):
            if group:
                picture = self._pipeline.process(
                    picture, group, number=moment.frame, time=moment.time
                )
            if model is not None:
                picture = model.process(pixels_of(picture))
                self.found[card] = model.found
        return picture

    def costs(
        self,
        picture: ImageLike,
        links: Sequence[ReadyCard],
        stopped: Callable[[], bool] = lambda: False,
    ) -> dict[str, float]:
        """Return the milliseconds of each card on its own, one after another."""
        made: dict[str, float] = {}
        for link in links:
            if stopped():
                break
            start = perf_counter()
            picture = self._alone(picture, link)
            pixels_of(picture)  # waits for the device
            made[link.card] = (perf_counter() - start) * 1e3
        return made

    def culprit(self, picture: ImageLike, links: Sequence[ReadyCard]) -> CardProblem | None:
        """Return the first card that fails on a picture, and why; None if none does."""
        for link in links:
            try:
                picture = self._alone(picture, link)
                pixels_of(picture)
            except Exception as error:
                return CardProblem(link.card, describe_error(error))
        return None

    def _alone(self, picture: ImageLike, link: ReadyCard) -> ImageLike:
        with self._bounds:
            if link.model is not None:
                return link.model.process(pixels_of(picture))
            assert link.filter is not None
            return self._single.process(picture, [link.filter])

    def plans(
        self, picture: ImageLike, links: Sequence[ReadyCard], titles: Mapping[str, str]
    ) -> list[tuple[str, str]]:
        """Return the plan of each list of filters as text, and the title of each model."""
        found: list[tuple[str, str]] = []
        for group, card, model in _steps(links):
            if group:
                picture = self._single.process(picture, group)
                found.append(("filters", self._single.explain()))
            if model is not None:
                picture = model.process(pixels_of(picture))
                found.append((titles.get(card, "model"), ""))
        return found

    def close(self) -> None:
        """Free all buffers and models."""
        for model in self._models.values():
            model.close()
        self._models.clear()
        self.take_ahead()
        self._pipeline.close()
        self._single.close()


def _steps(links: Sequence[ReadyCard]) -> Iterator[tuple[list[Filter], str, ModelRunner | None]]:
    """Yield each model and its card with the filters before it; at the end, those after all."""
    group: list[Filter] = []
    for link in links:
        if link.filter is not None:
            group.append(link.filter)
        else:
            yield group, link.card, link.model
            group = []
    yield group, "", None


def describe_error(error: BaseException) -> str:
    """Return the text of an error for the page.

    >>> describe_error(ValueError("no such thing"))
    'no such thing'
    """
    if isinstance(error, KeyError) and error.args:
        return masked(str(error.args[0]))
    return readable(masked(str(error))) or type(error).__name__


def pixels_of(picture: ImageLike) -> NDArray:
    """Return a picture as an array of shape (height, width) or (height, width, channels).

    >>> pixels_of(np.zeros((2, 3, 4), np.uint8)).shape
    (2, 3, 4)
    """
    made: NDArray = np.asarray(picture)
    return made
