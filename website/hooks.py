"""What MkDocs calls while it builds the site."""

from __future__ import annotations

import gzip
import os
import pathlib
import re
import sys
from typing import TYPE_CHECKING

ROOT = pathlib.Path(__file__).parents[1]
for folder in (ROOT, ROOT / "src"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from mkdocs.structure.files import File, Files  # noqa: E402

from website import home, links, llms, pages, selftest, shaders, versions  # noqa: E402
from website.catalogue.pictures import Pictures  # noqa: E402

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ASSETS = ROOT / "website" / "assets"

#: Files of the package that the site shows as well, by their path on it.
_BORROWED = {
    "assets/dala.js": "web/static/dala.js",
    "assets/inter.woff2": "studio/static/inter-latin-wght-normal.woff2",
    "assets/jetbrains-mono.woff2": "studio/static/jetbrains-mono-latin-wght-normal.woff2",
    "assets/fonts.txt": "studio/static/licenses.txt",
}

#: Parts of a page whose spaces matter.
_KEPT = re.compile(r"(<(?:pre|script|textarea|style)\b.*?</(?:pre|script|textarea|style)>)", re.S)

#: The generated pages of the running build, by their path.
_generated: dict[str, pages.Generated] = {}
#: The generated pictures of the running build, by their path.
_pictures: dict[str, pathlib.Path] = {}
#: The Markdown of every page of the running build, as it is published beside the page.
_markdown: dict[str, str] = {}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Generate pages, and put them where the navigation names their folder.

    A site of one version of several (``SITE_VERSION``) gets a switcher; see ``website.versions``.
    """
    version = os.environ.get("SITE_VERSION")
    if version:
        config.site_url = f"{config.site_url}{version}/"
        config.extra["version"] = {"provider": "mike", "default": versions.LATEST}
    _generated.clear()
    _markdown.clear()
    pictures = Pictures()
    _generated.update(pages.generate(pictures))
    selftest.add(pictures)
    home.add(pictures)
    shaders.add(pictures)
    _pictures.clear()
    _pictures.update(pictures.files)
    nav = pages.complete(config.nav, pathlib.Path(config.docs_dir))
    config.nav = pages.navigation(nav, _generated)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add generated pages and the assets of the site."""
    for path, page in _generated.items():
        files.append(File.generated(config, path, content=page.text))
    for path, file in _pictures.items():
        files.append(File.generated(config, path, abs_src_path=str(file)))
    static = ROOT / "src" / "dala"
    for name, source in _BORROWED.items():
        files.append(File.generated(config, name, abs_src_path=str(static / source)))
    for path in sorted(ASSETS.rglob("*")):
        if path.is_file():
            name = f"assets/{path.relative_to(ASSETS).as_posix()}"
            files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Keep the Markdown for readers of plain text; lead links out of ``docs`` to the repository."""
    path = page.file.src_uri
    markdown = links.rewrite(markdown, path, config.repo_url, pages.MIRRORED)
    if path == home.PAGE:
        _markdown[path] = markdown
        return home.prepared(markdown, page.meta)
    if path == shaders.PAGE:
        _markdown[path] = markdown
        return shaders.prepared(markdown)
    if path in _generated:
        page.edit_url = None
        edited = _generated[path].source
        if edited:
            page.edit_url = f"{config.repo_url}/edit/HEAD/{edited}"
    _markdown[path] = markdown
    return markdown


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Give each picture of the gallery an anchor, to which the home page leads."""
    return home.anchored(html) if page.file.src_uri == "gallery.md" else html


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Drop indentation, a third of a page, except in code."""
    parts = _KEPT.split(output)
    return "".join(p if n % 2 else re.sub(r"\n\s+", "\n", p) for n, p in enumerate(parts))


def on_post_build(config: MkDocsConfig) -> None:
    """Write the Markdown of every page beside it, and ``llms.txt``; drop what no page loads."""
    site = pathlib.Path(config.site_dir)
    llms.write(site, _markdown, config)
    # The switcher of versions finds the root of a site only if it is in the list of pages.
    home = f"<loc>{config.site_url}"
    pages_listed = (site / "sitemap.xml").read_text(encoding="utf-8")
    pages_listed = pages_listed.replace(f"{home}index.html<", f"{home}<")
    (site / "sitemap.xml").write_text(pages_listed, encoding="utf-8")
    (site / "sitemap.xml.gz").write_bytes(gzip.compress(pages_listed.encode(), mtime=0))
    for path in [*site.rglob("*.map"), *site.glob("assets/javascripts/lunr/**/*.js")]:
        path.unlink()
    for path in [*site.glob("assets/**/*.js"), *site.glob("assets/**/*.css")]:
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"\n/[/*]# sourceMappingURL=\S+(?: \*/)?", "", text), "utf-8")
