"""Pictures of strangers: only the listed decoders of Pillow are used, whatever a file is called."""

from __future__ import annotations

import contextlib
import io
import os
import struct
import subprocess
import sys

import numpy as np
import pytest
from PIL import EpsImagePlugin, Image

import dala
from dala.cli import main
from dala.errors import DalaError, ParameterError
from dala.media import Frame, video
from dala.media.pictures import plugins

EPS = b"""%!PS-Adobe-3.0 EPSF-3.0
%%BoundingBox: 0 0 8 8
%%EndComments
(/tmp/secret) (r) file 8 string readline pop =
showpage
%%EOF
"""
#: The same with the binary header of DOS.
DOS = struct.pack("<4sIIIIIIH", b"\xc5\xd0\xd3\xc6", 30, len(EPS), 0, 0, 0, 0, 0xFFFF) + EPS
WMF = struct.pack("<IHhhhhHIH", 0x9AC6CDD7, 0, 0, 0, 8, 8, 72, 0, 0) + b"\1\0\x09\0" + bytes(64)
FITS = b"".join(
    line.ljust(80)
    for line in (
        b"SIMPLE  =                    T", b"BITPIX  =                    8",
        b"NAXIS   =                    2", b"NAXIS1  =                    2",
        b"NAXIS2  =                    2", b"END",
    )
).ljust(2880) + bytes(2880)  # fmt: skip
HOSTILE = {
    "eps": EPS,
    "eps for dos": DOS,
    "wmf": WMF,
    "fits": FITS,
    "iptc": b"\x1c\x03\x00\0\1\0" + b"\x1c\x08\x0a" + struct.pack(">H", len(EPS)) + EPS,
    "bufr": b"BUFR" + bytes(64),
    "grib": b"GRIB\0\0\0\1" + bytes(64),
    "hdf5": b"\x89HDF\r\n\x1a\n" + bytes(64),
    "mpeg": b"\0\0\1\xb3\x00\x80\x08\x13" + bytes(64),
    "pdf": b"%PDF-1.7\n" + bytes(64),
    "svg": b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>',
}


@pytest.fixture
def ghostscript(tmp_path, monkeypatch):
    """A program named gs that leaves a trace; yields the file it would leave."""
    folder, trace = tmp_path / "bin", tmp_path / "gs was here"
    folder.mkdir()
    script = folder / "gs"
    script.write_text(f"#!/bin/sh\ntouch '{trace}'\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(EpsImagePlugin, "gs_binary", None)
    return trace


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_pillow_alone_would_start_ghostscript(ghostscript):
    with pytest.raises((OSError, subprocess.CalledProcessError)):
        Image.open(io.BytesIO(EPS)).load()
    assert ghostscript.exists()


@pytest.mark.parametrize("kind", HOSTILE)
def test_no_other_decoder_is_reached(tmp_path, monkeypatch, ghostscript, kind):
    def started(*_, **__):
        raise AssertionError("a program was started")

    monkeypatch.setattr(subprocess, "Popen", started)
    monkeypatch.setattr(os, "system", started)
    refused = "names something outside it" if kind == "svg" else "cannot be read as a picture"
    for name in ("photo.png", "photo.eps", "photo.jpg", "photo"):
        path = tmp_path / name
        path.write_bytes(HOSTILE[kind])
        for source in (path, HOSTILE[kind], io.BytesIO(HOSTILE[kind])):
            with pytest.raises(ParameterError, match=refused) as failed:
                Frame.open(source, device="cpu")
            assert ("is PostScript, a program" in str(failed.value)) == kind.startswith("eps")
        with contextlib.suppress(DalaError), video.open(path, device="cpu"):
            pass  # FFmpeg reads FITS itself
        with pytest.raises(DalaError):
            dala.media.load_lut(path)
    assert main(["filter", str(tmp_path / "photo.png"), str(tmp_path / "out.png"), "--sepia"]) == 2
    assert not (tmp_path / "out.png").exists()
    assert not ghostscript.exists()


def test_formats_are_those_of_pillow_without_ways_out():
    Image.init()
    out = {"EPS", "WMF", "IPTC", "FITS", "BUFR", "GRIB", "HDF5", "MPEG", "FPX", "MIC", "BLP",
           "ICNS"}  # fmt: skip
    assert not plugins.FORMATS & out
    # A format that a newer Pillow adds must be looked at before it is listed, here or there.
    assert set(Image.OPEN) - plugins.FORMATS <= out


@pytest.mark.parametrize(
    "kind", ["BMP", "DIB", "GIF", "ICO", "JPEG", "JPEG2000", "PCX", "PNG", "PPM", "SGI",
             "TGA", "TIFF", "WEBP", "QOI"],
)  # fmt: skip
def test_listed_formats_open(kind):
    pixels = np.zeros((16, 16, 3), np.uint8)
    pixels[:, 8:] = 255
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    found = Frame.open(file.getvalue(), device="cpu").picture()
    assert np.abs(found[..., :3].astype(int) - pixels).max() <= 8


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
def test_a_pipe_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "a.png")
    with pytest.raises(ParameterError, match=r"a\.png cannot be read as a picture \(it is a pipe"):
        Frame.open(tmp_path / "a.png")


def test_only_the_decoder_of_its_kind_reads_an_animation(tmp_path):
    (tmp_path / "a.gif").write_bytes(b"GIF89a" + EPS)
    with pytest.raises(DalaError):
        video.open(tmp_path / "a.gif", device="cpu")


def test_a_plugin_that_the_program_registers(monkeypatch):
    """It is its own choice, as with pillow-heif."""
    Image.init()  # decoders that register in the copies would be lost to the tests after this one
    for table in ("ID", "OPEN"):
        monkeypatch.setattr(Image, table, getattr(Image, table).copy())

    def opened(file, name):
        return Image.new("RGB", (3, 2), "red")

    Image.register_open("OWN", opened, lambda head: head.startswith(b"OWN!"))
    assert Frame.open(b"OWN!" + bytes(20), device="cpu").shape == (2, 3, 3)
