"""Files of look-up tables."""

from __future__ import annotations

import tempfile
from pathlib import Path

from dala.gpu.compute import load_cube
from tests.fuzz.target import Target, digest

CUBE = b"""# a comment
TITLE "warm \xc3\xa9"
LUT_3D_SIZE 2
DOMAIN_MIN 0.0 0.0 0.0
DOMAIN_MAX 1.0 1.0 1.0
0 0 0
1 0 0
0 1 0
1 1 0
0 0 1
1 0 1
0 1 1
1 1 1
"""
SHAPER = b"LUT_1D_SIZE 3\nLUT_1D_INPUT_RANGE 0.0 1.0\n0 0 0\n0.4 0.5 0.6\n1e0 1 1\n"
OCIO = {
    "3dl": b"0 512 1023\n"
    + b"".join(
        b"%d %d %d\n" % (i, j, k) for i in (0, 9, 4095) for j in (0, 9, 4095) for k in (0, 9, 4095)
    ),
    "spi1d": b"Version 1\nFrom 0.0 1.0\nLength 3\nComponents 1\n{\n0.0\n0.5\n1.0\n}\n",
    "csp": b"CSPLUTV100\n1D\n\n2\n0 1\n0 1\n2\n0 1\n0 1\n2\n0 1\n0 1\n\n2\n0 0 0\n1 1 1\n",
    "clf": b'<?xml version="1.0"?><ProcessList id="a" compCLFversion="3.0"><Matrix '
    b'inBitDepth="32f" outBitDepth="32f"><Array dim="3 3">1 0 0 0 1 0 0 0 1</Array>'
    b"</Matrix></ProcessList>",
}


class CubeFiles(Target):
    """.cube files, read by our own code."""

    name = "cube"
    words = (
        b"LUT_3D_SIZE ",
        b"LUT_1D_SIZE ",
        b"DOMAIN_MIN ",
        b'TITLE "',
        b"nan",
        b"inf",
        b"1e400",
        b"256",
        b"65536",
        b"99999999",
        b"-1",
        b"\n\n",
        b"#",
        b"\xff\xfe",
        b"LUT_3D_INPUT_RANGE ",
    )

    def seeds(self) -> list[bytes]:
        return [CUBE, SHAPER, SHAPER.replace(b"0 0 0\n", b"LUT_3D_SIZE 2\n0 0 0\n", 1)]

    def read(self, data: bytes) -> str:
        cube = load_cube(data)
        return f"{cube.title!r} {cube.table.shape} {digest(cube.table.tobytes())}"


class LutFiles(Target):
    """Files that OpenColorIO reads; the first byte chooses the suffix."""

    name = "lut"

    def seeds(self) -> list[bytes]:
        return [bytes([n]) + data for n, data in enumerate(OCIO.values())]

    def read(self, data: bytes) -> str:
        from dala.media import load_lut

        kind = list(OCIO)[(data or b"\0")[0] % len(OCIO)]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"table.{kind}"
            path.write_bytes(data[1:])
            try:
                cube = load_lut(path)
            except Exception as error:
                error.args = tuple(str(a).replace(folder, "") for a in error.args)
                raise
        return f"{cube.table.shape} {digest(cube.table.tobytes())}"
