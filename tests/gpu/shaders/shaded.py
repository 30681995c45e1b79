"""What the tests of shaders share."""

from __future__ import annotations

import numpy as np
import pytest

from dala.errors import (
    ShaderError,
)

RNG = np.random.default_rng(11)


PHOTO = RNG.integers(0, 256, (13, 29, 4), dtype=np.uint8)


GROUPS = (4, 2, 1)  # of 8 x 8, which cover the photo


PIXELS = "@group(0) @binding(0) var<storage, read_write> pixels: array<u32>;\n"


BLOCK = "@group(0) @binding(1) var<uniform> block: vec4u;\n"


MAIN = "@compute @workgroup_size(8, 8)\nfn main(@builtin(global_invocation_id) id: vec3u) {\n"


def flood(body: str, *declared: str, size: str = "64") -> str:
    """Return a shader with one invocation per pixel."""
    head = PIXELS + "".join(line + "\n" for line in declared)
    return (
        f"{head}@compute @workgroup_size({size})\n"
        f"fn main(@builtin(global_invocation_id) id: vec3u) {{ {body} }}\n"
    )


def refused(s, error=ShaderError) -> str:
    """Return the message of the error that the next wait raises."""
    with pytest.raises(error) as caught:
        s.synchronize()
    assert s.errors[-1] is caught.value
    s.synchronize()
    return str(caught.value)
