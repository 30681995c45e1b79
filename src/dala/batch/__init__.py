"""The same work over many files, on one machine or many, with one identical result.

``batch.videos``, ``batch.images`` and ``batch.scenes`` describe a job. ``job.plan()`` says what it
would do, ``job.run()`` does it: in processes of this machine, or on a Ray cluster. Tasks are a few
hundred bytes; workers read and write files themselves.

>>> from dala import batch
>>> job = batch.images("photos/**/*.jpg", out="small/{path}.webp", chain=["grayscale"])
>>> job.out.name_of("/photos/a/b.jpg", "/photos").endswith("/small/a/b.webp")
True
"""

from __future__ import annotations

from dala.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
