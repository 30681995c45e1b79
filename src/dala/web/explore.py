"""Find the plans of a chain: one for each class of picture sizes and positions of its controls.

A plan is recorded with symbols and holds where its guards hold. Then it is compared with plans that
are recorded with plain numbers elsewhere. A control whose numbers do not follow from its symbol is
fixed, or gets a plan for each of its positions; a chain whose numbers do not follow from the
picture's size takes that size only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import isinf

import numpy as np

from dala.errors import BufferTooLarge, DalaError, ParameterError
from dala.gpu.compute.recording import Expr, Guard, Plan, PlanBuffer, PlanStep
from dala.web.controls import Control, Numbers
from dala.web.sources import GIVEN, HEIGHT, MATRICES, RANGES, WIDTH, WebSource

#: The most plans of a chain: combinations of positions whose plans differ.
MOST_PLANS = 40

#: The size at which chains are recorded that take any.
BASE = (640, 360)

#: Sizes that are tried: tiny, odd, of phones, of screens, and tall.
SIZES = (
    (64, 48), (65, 47), (66, 49), (67, 50), (1, 1), (1, 7), (9, 1), (3, 2), (17, 9), (16, 16),
    (160, 120), (320, 240), (480, 854), (720, 720), (1280, 720), (1080, 1920), (1920, 1080),
    (1921, 1081), (2560, 1440), (3000, 4000), (3840, 2160),
)  # fmt: skip
#: More of them, spread evenly over the logarithms of both sides.
SPREAD = tuple(
    (round(2 ** (12 * (0.7548776662 * n % 1))), round(2 ** (12 * (0.5698402909 * n % 1))))
    for n in range(1, 160)
)
#: A size at which positions of a control may need other plans than at ``BASE``.
SMALL: Numbers = {WIDTH: 61, HEIGHT: 43}
#: Sizes at which plans are compared.
COMPARED = ((64, 48), (67, 51), (1280, 720))


@dataclass(frozen=True)
class Variant:
    """One plan, and the lists of guards of which one must hold."""

    plan: Plan
    when: tuple[tuple[Guard, ...], ...]


@dataclass
class WebPlan:
    """The plans of a chain, as they are exported.

    Attributes:
        name: of the chain.
        controls: that can be changed, and those that are fixed.
        size: (width, height) where the chain takes one size only.
        variants: by format of the picture: "rgba", and perhaps "nv12" and "i420".
        notes: what is fixed or left out, and why.
        roles: what the page gives the kernels: "time", "frame", "pointer", "date".
        generator: True if the chain draws by itself, without a picture.

    Example::

        made = dala.web.plan(["invert"])
        print(made.dispatches, [control.name for control in made.live], made.notes)
    """

    name: str
    controls: list[Control]
    size: tuple[int, int] | None
    variants: dict[str, list[Variant]] = field(repr=False)
    notes: list[str] = field(default_factory=list)
    roles: tuple[str, ...] = ()
    generator: bool = False

    @property
    def live(self) -> list[Control]:
        """The controls that can be changed."""
        return [c for c in self.controls if not c.why]

    @property
    def dispatches(self) -> int:
        """The number of dispatches with the controls as they are."""
        return len(self.at(*(self.size or BASE)).steps)

    def at(self, width: int, height: int, format: str = "rgba", **values: float) -> Plan:
        """Return the plan for a size and for controls by name, with plain numbers."""
        numbers = numbers_of(self.controls, width, height)
        for c in self.controls:
            if c.name in values:
                numbers.update(dict.fromkeys(c.symbols, values[c.name]))
        for variant in self.variants[format]:
            if any(variant_holds(guards, numbers) for guards in variant.when):
                return variant.plan.at(numbers)
        raise ParameterError(f"no plan for {width} x {height} with {values}")


def variant_holds(guards: Iterable[Guard], numbers: Numbers) -> bool:
    """Return whether all guards hold for some numbers."""
    return Plan((), (), (), "", tuple(guards)).holds(numbers)


def numbers_of(controls: Iterable[Control], width: int, height: int) -> Numbers:
    """Return the numbers of all symbols."""
    numbers: Numbers = {WIDTH: width, HEIGHT: height, "matrix": 0, "full": 0}
    numbers |= {symbol: 0 for symbols in GIVEN.values() for symbol in symbols}
    for c in controls:
        numbers.update(c.numbers)
    return numbers


def explore(source: WebSource) -> WebPlan:
    """Record the plans of a chain.

    Raises:
        DalaError: a filter cannot be exported, or its parameters are refused.
    """
    return _Explorer(source).explore()


class _Explorer:
    def __init__(self, source: WebSource) -> None:
        self.source = source
        self.controls = list(source.controls)
        self.notes: list[str] = []
        self.size = source.size
        #: Symbols whose numbers follow from them.
        self.symbolic: set[str] = set()

    def explore(self) -> WebPlan:
        self._find_symbols()
        axes = self._axes()
        source = self.source
        variants = {format: self._variants(format, axes) for format in source.formats}
        given = source.roles, source.generator
        return WebPlan(source.name, self.controls, self.size, variants, self.notes, *given)

    # symbols ----------------------------------------------------------------------------------
    def _base(self) -> Numbers:
        return numbers_of(self.controls, *(self.size or BASE))

    def _find_symbols(self) -> None:
        """Find the symbols that plans are functions of."""
        base = self._base()
        self.source.record(base, ())  # raises what the chain is refused for
        sizes = [base | {WIDTH: w, HEIGHT: h} for w, h in COMPARED]
        if self.size is None and self._agrees({WIDTH, HEIGHT}, base, sizes):
            self.symbolic |= {WIDTH, HEIGHT}
        elif self.size is None:
            self.size = BASE
            self.notes.append(
                f"the chain takes pictures of {BASE[0]} x {BASE[1]}: its tables depend on the size"
            )
        for number, c in enumerate(self.controls):
            if c.why or c.type in ("bool", "choice"):
                continue
            places = [base | dict.fromkeys(c.symbols, v) for v in _some(c)]
            if self._agrees(set(c.symbols), base, places):
                self.symbolic.update(c.symbols)
            elif not c.discrete:
                self._fix(number, "its numbers are computed on the desktop")

    def _agrees(self, names: set[str], base: Numbers, places: Sequence[Numbers]) -> bool:
        """Return whether plans with these symbols give the numbers of plain plans elsewhere."""
        found: list[Plan] = []
        try:
            found.append(self.source.record(base, names))
        except DalaError:
            return False
        for place in places:
            plain = self._tried(place, ())
            if plain is None:
                continue
            plan = next((p for p in found if p.holds(place)), None)
            if plan is None:
                plan = self._tried(place, names)
                if plan is None:
                    return False
                found.append(plan)
            if not same(plan.at(place), plain):
                return False
        return True

    def _fix(self, number: int, why: str) -> None:
        c = self.controls[number]
        self.controls[number] = c.fixed(why)
        self.notes.append(f"{c.name} stays as it is: {why}")

    # plans ------------------------------------------------------------------------------------
    def _tried(self, numbers: Numbers, names: Iterable[str], format: str = "rgba") -> Plan | None:
        """Return the plan of some numbers, or None if they are refused."""
        try:
            return self.source.record(numbers, set(names), format)
        except (DalaError, BufferTooLarge, OverflowError):
            return None

    def _axes(self) -> list[list[Numbers]]:
        """Return, for each control whose positions need several plans, one position of each."""
        base = self._base()
        axes: list[list[Numbers]] = []
        total = 1
        for number, c in enumerate(self.controls):
            if c.why:
                continue
            classes = self._classes(c, base)
            if len(classes) > 1 and total * len(classes) > MOST_PLANS:
                most = MOST_PLANS // total
                kept = self._narrowed(number, classes, most)
                if len(kept) < 2:
                    self._fix(number, f"the chain has {total} plans already")
                    continue
                classes = kept
            total *= max(len(classes), 1)
            if len(classes) > 1:
                axes.append(classes)
        return axes

    def _classes(self, c: Control, base: Numbers) -> list[Numbers]:
        """Return positions of a control whose plans differ; the present one is first."""
        bases = [base] if self.size is not None else [base, base | SMALL]
        if set(c.symbols) <= self.symbolic and all(self._covers(c, place) for place in bases):
            return []
        found: list[tuple[Numbers, tuple[Guard, ...]]] = []
        own = [c.numbers, *(dict.fromkeys(c.symbols, value) for value in c.positions())]
        for position, start in product(own, bases):
            place = start | position
            if any(variant_holds(guards, place) for _, guards in found):
                continue
            plan = self._tried(place, self.symbolic)
            if plan is not None:
                found.append((position, self._guards(plan, place)))
        return [dict(items) for items in dict.fromkeys(tuple(p.items()) for p, _ in found)]

    def _covers(self, c: Control, base: Numbers) -> bool:
        """Return whether one plan holds at all positions of a control."""
        plan = self._tried(base, self.symbolic)
        if plan is None:
            return False
        guards = [g for g in plan.guards if not _trivial(g)]
        tried = c.positions() if c.discrete else [c.low, c.high, *c.positions()[::7]]
        return all(variant_holds(guards, base | dict.fromkeys(c.symbols, v)) for v in tried)

    def _narrowed(self, number: int, classes: list[Numbers], most: int) -> list[Numbers]:
        """Return the classes next to the present position, and narrow the control to them."""
        c = self.controls[number]
        if most < 2 or len(c.symbols) > 1 or c.type in ("choice", "bool"):
            return []
        symbol, value = c.symbols[0], c.values[0]
        near = sorted(classes, key=lambda p: abs(p[symbol] - value))[:most]
        numbers = [p[symbol] for p in near]
        self.controls[number] = replace(c, low=min(numbers), high=max(numbers))
        self.notes.append(
            f"{c.name} is from {min(numbers):g} to {max(numbers):g}: each needs a plan of its own"
        )
        return near

    def _guards(self, plan: Plan, place: Numbers) -> tuple[Guard, ...]:
        """Return the guards of a plan; symbols that were plain numbers are guarded by those."""
        guards = [g for g in plan.guards if not _trivial(g)]
        names = {s for c in self.controls if not c.why for s in c.symbols} | {WIDTH, HEIGHT}
        guards += (("==", name, place[name], True) for name in sorted(names - self.symbolic))
        return tuple(guards)

    def _variants(self, format: str, axes: list[list[Numbers]]) -> list[Variant]:
        found: list[tuple[Plan, tuple[Guard, ...]]] = []
        codings: list[Numbers] = [{}]
        if format != "rgba":
            every = product(range(len(MATRICES)), range(len(RANGES)))
            codings = [{"matrix": m, "full": f} for m, f in every]
        every_size = (*SIZES, *SPREAD) if self.size is None else ()
        sizes: list[Numbers] = [{}]
        sizes += [{WIDTH: w, HEIGHT: h} for w, h in every_size]
        needed: list[Numbers] = []
        for number, positions in enumerate(product(*axes, codings)):
            # Other positions mostly have the classes of sizes that the first has.
            tried = deque(sizes if number == 0 else (*needed, *sizes[1 :: len(sizes) // 24 + 1]))
            while tried:
                size = tried.popleft()
                place = self._base() | size
                for position in positions:
                    place |= position
                if format != "rgba":
                    place[HEIGHT] = -(-place[HEIGHT] // 2) * 2
                    place[WIDTH] = -(-place[WIDTH] // 2) * 2
                if any(variant_holds(guards, place) for _, guards in found):
                    continue
                plan = self._tried(place, self.symbolic, format)
                if plan is None:
                    continue
                guards = self._guards(plan, place)
                if format != "rgba":
                    coding: list[Guard] = [("==", n, place[n], True) for n in ("matrix", "full")]
                    guards = (*coding, *guards)
                found.append((plan, guards))
                if number == 0:
                    needed.append(size)
                    if self.size is None:
                        tried.extend(_exceptions(guards))
        return _joined(found)


def _exceptions(guards: Iterable[Guard]) -> list[Numbers]:
    """Return sizes that guards exclude one by one, such as those of a second picture."""
    sides: dict[str, set[int]] = {WIDTH: {BASE[0]}, HEIGHT: {BASE[1]}}
    for kind, a, b, _ in guards:
        if kind == "==" and a in sides and isinstance(b, int) and b > 0:
            sides[str(a)].add(b)
    both = product(sorted(sides[WIDTH]), sorted(sides[HEIGHT]))
    return [{WIDTH: w, HEIGHT: h} for w, h in both if (w, h) != BASE]


def _some(c: Control) -> list[int | float]:
    """Return a few positions of a control at which to compare plans."""
    low, high = c.low, c.high
    if c.type in ("int", "ints"):
        return sorted({int(low), int(low + (high - low) // 3), int(high)})
    return [low + (high - low) * part for part in (0.0, 0.21, 0.55, 0.83, 1.0)]


def _trivial(guard: Guard) -> bool:
    """Return whether a guard says nothing: comparisons with infinity, and of sizes with 0."""
    kind, a, b, result = guard
    if any(isinstance(x, float) and isinf(x) for x in (a, b)):
        return True
    empty = (kind == "==" and b == 0) or (kind == "<" and b == 1)
    return empty and not result and _positive(a)


def _positive(expr: Expr) -> bool:
    if isinstance(expr, str):
        return expr in (WIDTH, HEIGHT)
    if isinstance(expr, tuple):
        return expr[0] == "*" and all(_positive(e) for e in expr[1:])
    return expr > 0


def _joined(found: Sequence[tuple[Plan, tuple[Guard, ...]]]) -> list[Variant]:
    """Join plans with equal formulas."""
    made: dict[tuple[object, ...], Variant] = {}
    for plan, guards in found:
        first = made.setdefault(key := _key(plan), Variant(plan, ()))
        made[key] = replace(first, when=(*first.when, guards))
    return list(made.values())


def _key(plan: Plan) -> tuple[object, ...]:
    steps = tuple((s.source, s.buffers, _constant(s), s.words, s.groups) for s in plan.steps)
    buffers = tuple(
        (b.nbytes, b.data if b.table is None and not b.words else None, b.words, b.table, b.role)
        for b in plan.buffers
    )
    return steps, buffers, plan.shape, plan.dtype, plan.swaps


def _constant(step: PlanStep) -> bytes:
    """Return a uniform block with zeros where it depends on symbols."""
    made = bytearray(step.block)
    for at, _, _ in step.words:
        made[at : at + 4] = bytes(4)
    return bytes(made)


def same(a: Plan, b: Plan) -> bool:
    """Return whether two plans of plain numbers do the same; floats may differ by rounding."""
    if len(a.steps) != len(b.steps) or a.shape != b.shape or a.dtype != b.dtype:
        return False
    if len(a.buffers) != len(b.buffers):
        return False
    for x, y in zip(a.steps, b.steps, strict=True):
        if (x.source, x.buffers, x.groups) != (y.source, y.buffers, y.groups):
            return False
        if not _near(x.block, y.block):
            return False
    return all(_equal(x, y) for x, y in zip(a.buffers, b.buffers, strict=True))


def _equal(x: PlanBuffer, y: PlanBuffer) -> bool:
    if (x.nbytes, x.role) != (y.nbytes, y.role) or (x.data is None) != (y.data is None):
        return False
    return x.data is None or y.data is None or _near(x.data, y.data)


def _near(a: bytes, b: bytes) -> bool:
    if a == b:
        return True
    if len(a) != len(b) or len(a) % 4:
        return False
    x, y = np.frombuffer(a, "<i4"), np.frombuffer(b, "<i4")
    # Neighboring floats are neighboring integers; sums in another order differ by a few.
    return bool((np.abs(x.astype(np.int64) - y) <= 4).all()) and _floats(a, b, x != y)


def _floats(a: bytes, b: bytes, where: np.ndarray) -> bool:
    """Return whether numbers that differ are floats: small integers are no normal floats."""
    x = np.abs(np.frombuffer(a, "<f4")[where])
    return bool((x > 1e-30).all())
