"""One page with the curves of all easings."""

from __future__ import annotations

from dala.media.sources.easing import EASINGS, easing
from website.catalogue.pictures import Pictures
from website.docstrings import table

#: An animation as a scene file has it.
SCENE_FILE = """{
  "dala": 2, "width": 320, "height": 180, "fps": 25, "duration": 1,
  "nodes": [{"type": "text", "id": "title", "text": "Hello", "size": 40, "position": [20, 60]}],
  "animations": [{"node": "title", "property": "x", "from": -200, "to": 20, "duration": 0.8, "easing": "back-out"}]
}"""
#: An easing on the command line.
OPTION = "--transition slide=1,easing=cubic-out"
#: Size of a curve in pixels; overshoots need room above and below.
_SIDE, _ROOM = 96, 28

#: The formula of the "-in" form of each family, for a time t from 0 to 1.
FORMULAS = {
    "quad": "t**2",
    "cubic": "t**3",
    "quart": "t**4",
    "quint": "t**5",
    "sine": "1 - cos(t * pi / 2)",
    "expo": "(2**(10 * (t - 1)) - 2**-10) / (1 - 2**-10)",
    "circ": "1 - sqrt(1 - t**2)",
    "back": "t**2 * (2.70158 * t - 1.70158)",
    "elastic": "(2**(10 * (t - 1)) - 2**-10) / (1 - 2**-10) * sin((1 - t) * 2 * pi / 0.3 + pi / 2)",
}
#: What families are, where a formula says too little or there is none.
_REMARKS = {
    "CSS": "As in style sheets: straight, or a Bezier curve with the control points of CSS.",
    "back": "Goes a tenth beyond the end, and returns.",
    "bounce": "Four parabolas that meet the end, as a ball that falls.",
    "elastic": "Swings around the end, as a spring.",
}
#: Forms with numbers of their own.
_FORMS = [
    (
        "`cubic-bezier(x1, y1, x2, y2)`",
        "x1 and x2 from 0 to 1; y1 and y2 any",
        "the curve of CSS from (0, 0) to (1, 1)",
    ),
    ("`steps(n)`", "n of 1 or more", "n equal steps; each jump is at the end of a step"),
    (
        "`steps(n, jump)`",
        "`jump-start`, `jump-end`, `jump-both` or `jump-none` (n of 2 or more)",
        "says where the jumps are",
    ),
    ("a function", "of a number from 0 to 1", "`lambda t: t**1.5`; not in scene files"),
]


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
        "In a scene file, which `dala compose scene.json -o out.mp4` renders, and for a transition on the command line:",
        "",
        "```json",
        SCENE_FILE,
        "```",
        "",
        "```sh",
        f"dala concat a.mp4 b.mp4 -o out.mp4 {OPTION}",
        "```",
        "",
        *table(("form", "range", ""), _FORMS),
        'Of a family with the formula f(t), "-in" is f(t), "-out" is 1 - f(1 - t), and "-in-out" is one after the other, each in half the time.',
        "",
    ]
    for family, names in families.items():
        lines += [f"## {family}", ""]
        lines += [_REMARKS[family], ""] if family in _REMARKS else []
        lines += [f"`{FORMULAS[family]}`", ""] if family in FORMULAS else []
        lines += ['<div class="curves">']
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
