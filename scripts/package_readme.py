"""The readme of the package: README.md with absolute addresses, made when a package is built.

In a clone its pictures and links are relative, so that they show the files beside them. A package
index has no files beside it: there they point to the repository, at the tag of the version.
"""

from __future__ import annotations

import pathlib
import re

from hatchling.metadata.plugin.interface import MetadataHookInterface

#: A Markdown link or picture, up to its target: ``](docs/images/demo.png``.
TARGET = re.compile(r"(!?)(\[(?:[^\[\]]|\[[^\]]*\])*\]\()([^)\s#]+)")
CODE = re.compile(r"(^```.*?^```$|^ {4}.*?$|`[^`\n]*`)", re.M | re.S)


def absolute(text: str, repository: str, version: str) -> str:
    """Return Markdown with addresses in ``repository`` instead of relative ones.

    >>> absolute("![a](b.png) [c](d.md#e) [f](https://g)", "https://github.com/o/r", "1.0")
    '![a](https://github.com/o/r/raw/v1.0/b.png) [c](https://github.com/o/r/blob/v1.0/d.md#e) [f](https://g)'
    """

    def address(match: re.Match[str]) -> str:
        picture, before, target = match.groups()
        if "://" in target or target.startswith("mailto:"):
            return match[0]
        kind = "raw" if picture else "blob"
        return f"{picture}{before}{repository}/{kind}/v{version}/{target}"

    parts = CODE.split(text)  # every second one is code, which keeps its brackets
    return "".join(p if n % 2 else TARGET.sub(address, p) for n, p in enumerate(parts))


class PackageReadme(MetadataHookInterface):
    """Adds the readme to the metadata."""

    def update(self, metadata: dict) -> None:
        root = pathlib.Path(self.root)
        source = (root / "src" / "dala" / "__init__.py").read_text(encoding="utf-8")
        version = re.search(r'^__version__ = "([^"]+)"', source, re.M)[1]
        text = (root / "README.md").read_text(encoding="utf-8")
        readme = absolute(text, metadata["urls"]["Repository"], version)
        metadata["readme"] = {"content-type": "text/markdown", "text": readme}
