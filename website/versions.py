"""Sites of several versions in one folder, with what the version switcher reads.

``python -m website.versions build/pages dev=build/site 0.1.0=old/site`` copies each site to a
folder of its name, and writes

- ``versions.json``, the list that the switcher of every page loads, newest first;
- ``latest/``, whose pages lead to those of the newest release, or of ``dev`` if there is none;
- ``index.html``, which leads to ``latest/``, ``404.html`` and ``llms.txt``.

All are plain files; any web server shows them. Sites must be built with ``SITE_VERSION``, as in
``make docs SITE_VERSION=0.1.0``, which gives their pages the switcher.
"""

from __future__ import annotations

import html
import json
import pathlib
import re
import shutil
import sys
from collections.abc import Mapping

#: The name of the site of the main branch, and of the folder that leads to the newest release.
DEV, LATEST = "dev", "latest"

_VERSION = re.compile(r"(\d+(?:\.\d+)*)(?:(a|b|rc)(\d+))?$")

_REDIRECT = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<meta http-equiv="refresh" content="0; url={target}">
<link rel="canonical" href="{target}">
<script>location.replace("{target}" + location.search + location.hash)</script>
</head>
<body><p>This page is at <a href="{target}">{target}</a>.</p></body>
</html>
"""


def order(version: str) -> tuple[tuple[int, ...], tuple[str, int]]:
    """Return the key by which versions are sorted; a candidate comes before its release.

    >>> sorted(["0.10.0", "0.2.0", "0.10.0rc1"], key=order)
    ['0.2.0', '0.10.0rc1', '0.10.0']

    Raises:
        ValueError: it is not a version.
    """
    found = _VERSION.match(version)
    if found is None:
        raise ValueError(f"not a version: {version!r}; give {DEV!r}, or one such as '0.1.0'")
    numbers = tuple(int(part) for part in found[1].split("."))
    return numbers, (found[2] or "z", int(found[3] or 0))


def newest(versions: list[str]) -> str:
    """Return the version that ``latest`` means: the newest release, else the newest candidate.

    >>> newest(["dev", "0.1.0", "0.2.0rc1"]), newest(["dev"])
    ('0.1.0', 'dev')
    """
    released = [name for name in versions if name != DEV]
    final = [name for name in released if order(name)[1][0] == "z"]
    return max(final or released, key=order) if released else DEV


def listed(versions: list[str]) -> list[dict[str, str | list[str]]]:
    """Return the contents of ``versions.json``: newest first, then ``dev``.

    >>> [(v["version"], v["title"], v["aliases"]) for v in listed(["dev", "0.1.0"])]
    [('0.1.0', '0.1.0', ['latest']), ('dev', 'dev', [])]
    """
    released = sorted((name for name in versions if name != DEV), key=order, reverse=True)
    latest = newest(versions)
    return [
        {
            "version": name,
            "title": name,
            "aliases": [LATEST] if name == latest else [],
        }
        for name in (*released, *([DEV] if DEV in versions else []))
    ]


def assemble(target: pathlib.Path, sites: Mapping[str, pathlib.Path]) -> None:
    """Write the sites of all versions, and what leads to them, to an empty or new folder.

    Raises:
        ValueError: a name is not a version, there is none, or a site has no switcher.
        FileExistsError: the folder has something in it.
    """
    if not sites:
        raise ValueError("there is no site to write")
    for name, site in sites.items():
        if name != DEV:
            order(name)
        page = site / "index.html"
        if not page.is_file() or '"provider": "mike"' not in page.read_text(encoding="utf-8"):
            raise ValueError(f"{site} is not a site that was built with SITE_VERSION={name}")
    target.mkdir(parents=True, exist_ok=True)
    if any(target.iterdir()):
        raise FileExistsError(f"{target} is not empty")
    for name, site in sites.items():
        shutil.copytree(site, target / name)
    latest = newest(list(sites))
    source = target / latest
    for page in sorted(source.rglob("*.html")):
        path = page.relative_to(source)
        if path.name != "404.html":
            up = "../" * len(path.parts)
            _redirect(target / LATEST / path, f"{up}{latest}/{path.as_posix()}")
    _redirect(target / "index.html", f"{LATEST}/index.html")
    shutil.copy(source / "404.html", target / "404.html")
    (target / "llms.txt").write_text(
        f"# Dala\n\n- [The documentation, as a list of pages]({latest}/llms.txt)\n",
        encoding="utf-8",
    )
    text = json.dumps(listed(list(sites)), indent=2)
    (target / "versions.json").write_text(f"{text}\n", encoding="utf-8")


def _redirect(path: pathlib.Path, target: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = _REDIRECT.format(title="Dala", target=html.escape(target, quote=True))
    path.write_text(text, encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Assemble sites; the arguments are the folder, and NAME=FOLDER for each version."""
    if len(arguments) < 2 or not all("=" in item for item in arguments[1:]):
        print(__doc__, file=sys.stderr)
        return 2
    sites = dict(item.split("=", 1) for item in arguments[1:])
    try:
        assemble(pathlib.Path(arguments[0]), {n: pathlib.Path(p) for n, p in sites.items()})
    except (ValueError, OSError) as error:
        print(f"website.versions: {error}", file=sys.stderr)
        return 1
    names = ", ".join(str(entry["version"]) for entry in listed(list(sites)))
    print(f"{arguments[0]}: {names}; latest is {newest(list(sites))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
