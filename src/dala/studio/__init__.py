"""A studio in the browser: pictures, videos, scenes and kernels, live.

- ``dala studio photo.jpg`` starts one from the command line
- ``dala.studio.app(...)``: an ASGI application, to run or to mount in another one
- ``dala.studio.widget(chain, source)``: a chain with controls in a notebook

They need ``pip install "dala-gpu[studio]"``.
"""

from __future__ import annotations

from dala.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
