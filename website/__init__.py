"""The site: what MkDocs does not do by itself. ``mkdocs.yml`` names ``hooks.py``.

Pages are written in ``docs``, and read well there. The reference, the catalogue and the project's
files join them when the site is built; they are generated from the library, never stored.
"""
