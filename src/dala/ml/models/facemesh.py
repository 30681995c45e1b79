"""MediaPipe's face mesh: 468 points of each face, and 478 with the irises."""

from __future__ import annotations

from typing import Final

import numpy as np

from dala.ml.landmarks.steps import (
    Landmarks,
    LandmarkSteps,
    Placed,
    Region,
    RunPart,
    around,
    around_detections,
    direction,
    unit,
)
from dala.ml.results import FaceMesh, Faces, Outputs, Prediction
from dala.ml.results.names import MESH_SIZE
from dala.ml.spec import RawResult, human_model
from dala.typing import NDArray

#: The side of a face's region, relative to the box of the detector or of the points.
_SCALE: Final = 1.5
#: The corners of each eye, from left to right, and whether the model sees it mirrored.
_EYES: Final = ((33, 133, False), (362, 263, True))
_EYE_SCALE: Final = 2.3
_EYE_INPUT: Final = (64, 64)
#: Numbers of the eye's outline in the output of "iris"; five points of the iris follow.
_OUTLINE: Final = 71 * 3


def decode(raw: RawResult) -> Faces:
    """Return the face from x, y and z of each point, in pixels of the input."""
    score = float(raw.outputs["output_faceflag"].reshape(-1)[0])
    if score < raw.options["score"]:
        return Faces((), raw.outputs)
    mesh = placed_mesh(raw.outputs["output_mesh"], raw.placement)
    return Faces([FaceMesh.of(mesh, score)], raw.outputs)


def placed_mesh(numbers: NDArray, placement: Placed) -> NDArray:
    """Return points (n, 3) in pixels of the picture; z has the scale of x."""
    points = numbers.reshape(-1, 3).astype(np.float64)
    flat = placement.back(points[:, :2])
    return np.concatenate([flat, points[:, 2:] * unit(placement)], axis=1)


def regions(found: Prediction, size: tuple[int, int]) -> list[Region]:
    """Return the regions of detected faces, with the eyes level."""
    assert isinstance(found, Faces)
    return around_detections(found, ("right_eye", "left_eye"), size, scale=_SCALE)


def again(face: Landmarks, outputs: Outputs, region: Region) -> Region:
    """Return the region of a face in the next frame."""
    assert isinstance(face, FaceMesh)
    mesh = face.mesh[:MESH_SIZE, :2]
    return around(mesh, direction(mesh[33], mesh[263]), region.size, scale=_SCALE)


def with_irises(face: Landmarks, run: RunPart) -> FaceMesh:
    """Return a face with ten more points: the center of each iris, and four on its edge."""
    assert isinstance(face, FaceMesh)
    parts = [face.mesh[:MESH_SIZE]]
    for first, second, mirrored in _EYES:
        corners = face.mesh[[first, second], :2]
        angle = direction(*corners)
        # The model knows one eye; the other is shown mirrored.
        region = around(corners, angle, _EYE_INPUT, scale=_EYE_SCALE, mirrored=mirrored)
        (numbers,) = run("iris", region).values()
        iris = placed_mesh(numbers.reshape(-1)[_OUTLINE:], region)
        iris[:, 2] += face.mesh[[first, second], 2].mean()
        if mirrored:  # center, right, top, left, bottom, in the picture
            iris = iris[[0, 3, 2, 1, 4]]
        parts.append(iris)
    return FaceMesh.of(np.concatenate(parts), face.score, face.id)


MODEL = human_model(
    "facemesh",
    "facemesh",
    "b60ca26f404724f43bd2b1575761d8265180e1f053cc0731caa68462927309e7",
    "3826da640b0a3021161605369ee6af293f75d518040355b960ec71a3390c1c0b",
    task="faces",
    title="MediaPipe face mesh, 468 points of each face, 192 x 192",
    size=(192, 192),
    decode=decode,
    options={"score": 0.5, "detector_score": 0.5, "most": 4, "iris": False},
    outputs=("mesh", "faceflag", "contours"),
    finds="faces, and 468 points of each",
    result="`Faces`: `.mesh`, named `.keypoints`; with `iris=True` ten points more",
    # The detector also takes cats for faces, which the mesh's own score refuses.
    steps=LandmarkSteps("blazeface_back", regions, again, Faces, "iris", with_irises),
)
