"""Conversion of weights from other libraries to ONNX, without executing code in the files.

``torch_file`` reads torch pickles with a restricted unpickler, ``tflite`` and ``tfjs`` read graphs,
and ``onnx_file`` writes ONNX.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dala.errors import CommandTimeout, ModelError


@contextmanager
def damaged(what: str, *kinds: type[Exception]) -> Iterator[None]:
    """Raise ModelError, with the fault, for errors of some kinds in a block.

    >>> with damaged("read_tflite: not a TFLite file, or damaged", KeyError):
    ...     {}["x"]
    Traceback (most recent call last):
    dala.errors.ModelError: read_tflite: not a TFLite file, or damaged: KeyError: 'x'
    """
    try:
        yield
    except ModelError:
        raise
    except kinds as error:
        if isinstance(error, CommandTimeout):
            raise
        raise ModelError(f"{what}: {type(error).__name__}: {str(error)[:300]}") from None
