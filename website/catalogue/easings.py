"""One page with the curves of all easings."""

from __future__ import annotations

from dala.media.sources.easing import EASINGS, easing
from website.catalogue.pictures import Pictures

#: Size of a curve in pixels; overshoots need room above and below.
_SIDE, _ROOM = 96, 28


def pages(pictures: Pictures) -> dict[str, tuple[str, str]]:
    """Return the page of the easings."""
    families: dict[str, list[str]] = {}
    for name in EASINGS:
        family = "CSS" if name == "linear" or name.startswith("ease") else name.partition("-")[0]
        families.setdefault(family, []).append(name)
    lines = [
        "# Easings",
        "",
        "Easings map the progress of an animation or a transition, from 0 to 1, to eased progress. Give one by its name, as "
        "`cubic-bezier(x1, y1, x2, y2)`, as `steps(n)`, or as a function of your own.",
        "",
        "Time runs to the right, progress up. The plain name of a family means `-in-out`, but `-out` for `bounce` and `elastic`.",
        "",
        "```python",
        "from dala.media import Scene",
        "",
        "with Scene(320, 180, fps=25) as scene:",
        '    title = scene.add_text("Hello", size=40, position=(20, 60))',
        '    scene.add_animation(title, "x", -200, 20, 0.8, "back-out")',
        "    picture = scene.render(0.4)",
        "```",
        "",
    ]
    for family, names in families.items():
        lines += [f"## {family}", "", '<div class="curves">']
        lines += [
            f"<figure>{curve(name)}<figcaption><code>{name}</code></figcaption></figure>"
            for name in names
        ]
        lines += ["</div>", ""]
    lines += ["See [animation](../../media/animation.md)."]
    return {"index": ("Easings", "\n".join(lines))}


def curve(name: str) -> str:
    """Return an easing's curve as SVG."""
    function = easing(name)
    points = []
    for step in range(65):
        t = step / 64
        points.append(f"{t * _SIDE:.1f},{_ROOM + (1 - function(t)) * _SIDE:.1f}")
    high = _SIDE + 2 * _ROOM
    return (
        f'<svg viewBox="-4 0 {_SIDE + 8} {high}" width="{_SIDE + 8}" height="{high}" role="img" '
        f'aria-label="The curve of {name}"><path d="M0 {_ROOM}H{_SIDE}M0 {_ROOM + _SIDE}H{_SIDE}" class="grid"/>'
        f'<polyline points="{" ".join(points)}"/></svg>'
    )
