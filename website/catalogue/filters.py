"""A page for every filter, effect and conversion."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from dala.cli.common import chain
from dala.errors.synonyms import words_for
from dala.gpu.compute.kernel import Kernel
from dala.gpu.compute.kernels.filter import CATEGORIES, FilterSpec
from dala.media.filters.calls import module_of
from dala.media.filters.declarations import declared
from tests.support.filter_stubs import row
from website.catalogue import costs, live
from website.catalogue.pictures import Pictures
from website.catalogue.programs import command, program
from website.docstrings import inline, table
from website.reference import REPOSITORY, ROOT


def specs() -> dict[str, list[FilterSpec]]:
    """Return all filters by category, in the order of the documentation."""
    held: dict[str, list[FilterSpec]] = {}
    for spec in sorted(declared().values(), key=lambda s: s.name):
        held.setdefault(spec.category, []).append(spec)
    order = [*CATEGORIES, *sorted(set(held) - set(CATEGORIES))]
    return {category: held[category] for category in order if category in held}


def pages(pictures: Pictures) -> dict[str, tuple[str, str]]:
    """Return the pages of all filters, and their list."""
    found = {"index": ("Filters", "\n".join(_index()))}
    pictures.of("catalogue/filters/coffee.webp", _BEFORE)
    for category in specs().values():
        for spec in category:
            found[spec.name] = (spec.name, "\n".join(_page(spec, pictures)))
    return found


_BEFORE = 'import dala\nresult = dala.samples.photo("coffee")\n'


def _index() -> Iterator[str]:
    count = len(declared())
    yield from (
        "# Filters",
        "",
        f"{count} filters for pictures and videos, each a call of `dala.media.gpu` or `dala.media.effects`, an "
        "option of `dala filter`, and an effect of scenes.",
        "",
        "What holds for all of them, borders, alpha and ranges, is on the page [Filters](../../media/filters.md).",
        "",
    )
    for category, held in specs().items():
        yield from (f"## {category}", "")
        yield from table(
            ("filter", ""), [(f"[`{s.name}`]({s.name}.md)", inline(s.summary)) for s in held]
        )


def wall() -> str:
    """Return small pictures of all filters with links, for the overview."""
    cells = []
    for held in specs().values():
        for spec in held:
            cells.append(
                f'<a href="filters/{spec.name}.html"><img src="filters/{spec.name}.webp" alt="" '
                f'loading="lazy" width="150" height="100"><span>{spec.name}</span></a>'
            )
    return '<div class="wall">\n' + "\n".join(cells) + "\n</div>\n"


def _page(spec: FilterSpec, pictures: Pictures) -> Iterator[str]:
    code = program(spec)
    pictures.of(f"catalogue/filters/{spec.name}.webp", code)
    before = "coffee"
    if (
        'photo("coffee")\nresult' not in code
        and 'picture = dala.samples.photo("coffee")' not in code
    ):
        before = f"{spec.name}-before"
        pictures.of(f"catalogue/filters/{before}.webp", code, "picture")
    yield from ("---", f'description: "{spec.summary}"', "---", "")
    yield from (f"# {spec.name}", "", inline(spec.summary), "")
    if spec.definition:
        yield from (inline(spec.definition), "")
    yield from (
        '<div class="pair" markdown>',
        "",
        f"![The picture before {spec.name}]({before}.webp)",
        f"![The picture after {spec.name}]({spec.name}.webp)",
        "",
        "</div>",
        "",
    )
    yield from live.element(spec, before, pictures)
    if spec.parameters:
        yield from ("## Parameters", "", "| parameter | default | range | |", "|---|---|---|---|")
        yield from (row(p) for p in spec.parameters)
        yield ""
    yield from ("## Python", "", "```python", code.rstrip(), "```", "")
    home = module_of(spec)
    call = f"dala.media.{home}.{spec.name}"
    yield from (f"Reference: [`{call}`](../../reference/dala.media.{home}/index.md#{call})", "")
    option = command(spec)
    if option:
        yield from (
            "## Command line",
            "",
            "```sh",
            f"dala filter in.png out.png {option}",
            "```",
            "",
        )
        form = chain.metavar(spec.name)
        yield from (
            f"The form of its value: `--{spec.name} {form}`".replace(" `", " `", 1).rstrip(),
            "",
        )
        yield from ("The same works for videos: `dala filter in.mp4 out.mp4 ...`.", "")
    yield from ("## Notes", "", *(f"- {note}" for note in notes(spec)), "")
    yield from costs.section(spec.name)
    others = [s for s in specs()[spec.category] if s is not spec]
    listed = ", ".join(f"[`{s.name}`]({s.name}.md)" for s in others)
    yield from ("## See also", "", f"{spec.category}: {listed}.", "")
    if words := words_for(spec.name):
        yield from (f"Also known as: {', '.join(words)}.", "")


def notes(spec: FilterSpec) -> Iterator[str]:
    """Yield what a filter does at borders, with alpha and with colors, and how it runs."""
    if spec.reach is not None:
        yield (
            "**Border**: `border` chooses what is read beyond the picture; kernels run by name and effects "
            "of scenes clamp to the nearest pixel."
        )
    if spec.kind == "conversion":
        yield "**Conversion**: its input or its result is not a picture, so it cannot be part of a list of filters."
    elif spec.resizes:
        yield "**Alpha** is resampled with the colors. The result may have another size."
    elif spec.keeps_alpha:
        yield "**Alpha** is kept."
    else:
        yield "**Alpha** is computed, not kept."
    if spec.kind != "conversion":
        yield "**Color**: values are used as stored, without linearizing; u8 results are rounded and clamped."
    if spec.is_recipe:
        yield "**Runs** as a recipe of several kernels; pipelines fuse them with their neighbors where they can."
    elif not isinstance(spec.kernel, Kernel):
        yield "**Runs** as an operation with code of its own for each engine."
    else:
        yield (
            "**Runs** as one kernel of [the kernel language](../../compute/kernel-language.md), which pipelines "
            f"fuse with its neighbors; `dala kernels {spec.name} --source wgsl` prints its code."
        )
    try:
        path = inspect.getsourcefile(spec.source)
        line = inspect.getsourcelines(spec.source)[1]
    except (OSError, TypeError):
        return
    if path:
        name = str(path).removeprefix(f"{ROOT}/")
        yield f"[Source]({REPOSITORY}/blob/HEAD/{name}#L{line})"
