"""The names of points of faces, hands and bodies, and the lines between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

#: The six points of a face that a detector finds; left is the person's left.
FACE_POINTS: Final = ("right_eye", "left_eye", "nose", "mouth", "right_ear", "left_ear")
#: Named points of a face, as the mean of points of the mesh of 468.
MESH_POINTS: Final = {
    "right_eye": (33, 133), "left_eye": (263, 362), "nose": (1,), "mouth": (13, 14),
    "right_ear": (234,), "left_ear": (454,), "forehead": (10,), "chin": (152,),
    "between_eyes": (168,), "right_eye_outer": (33,), "right_eye_inner": (133,),
    "right_eye_top": (159,), "right_eye_bottom": (145,), "left_eye_outer": (263,),
    "left_eye_inner": (362,), "left_eye_top": (386,), "left_eye_bottom": (374,),
    "right_eyebrow": (105,), "left_eyebrow": (334,), "right_cheek": (50,), "left_cheek": (280,),
    "mouth_right": (61,), "mouth_left": (291,), "upper_lip": (13,), "lower_lip": (14,),
}  # fmt: skip
#: Points of the mesh without and with the irises.
MESH_SIZE: Final = 468
IRIS_MESH_SIZE: Final = 478
#: The centers of the irises in the mesh of 478; the four points after each are on its edge.
IRIS_POINTS: Final = {"right_iris": (468,), "left_iris": (473,)}

#: The 21 points of a hand.
HAND_POINTS: Final = (
    "wrist",
    "thumb_cmc", "thumb_mcp", "thumb_ip", "thumb_tip",
    "index_mcp", "index_pip", "index_dip", "index_tip",
    "middle_mcp", "middle_pip", "middle_dip", "middle_tip",
    "ring_mcp", "ring_pip", "ring_dip", "ring_tip",
    "pinky_mcp", "pinky_pip", "pinky_dip", "pinky_tip",
)  # fmt: skip
#: The bones of a hand: the fingers, and the edge of the palm.
HAND_BONES: Final = (
    *(
        (a, b)
        for k in range(1, 21, 4)
        for a, b in zip(HAND_POINTS[k : k + 3], HAND_POINTS[k + 1 : k + 4], strict=True)
    ),
    ("wrist", "thumb_cmc"), ("wrist", "index_mcp"), ("wrist", "pinky_mcp"),
    ("index_mcp", "middle_mcp"), ("middle_mcp", "ring_mcp"), ("ring_mcp", "pinky_mcp"),
)  # fmt: skip

#: The 17 points of a person that PoseNet and MoveNet find.
BODY_POINTS: Final = (
    "nose", "left_eye", "right_eye", "left_ear", "right_ear", "left_shoulder", "right_shoulder",
    "left_elbow", "right_elbow", "left_wrist", "right_wrist", "left_hip", "right_hip",
    "left_knee", "right_knee", "left_ankle", "right_ankle",
)  # fmt: skip
#: The 33 points of a person that BlazePose finds.
POSE_POINTS: Final = (
    "nose", "left_eye_inner", "left_eye", "left_eye_outer", "right_eye_inner", "right_eye",
    "right_eye_outer", "left_ear", "right_ear", "mouth_left", "mouth_right", "left_shoulder",
    "right_shoulder", "left_elbow", "right_elbow", "left_wrist", "right_wrist", "left_pinky",
    "right_pinky", "left_index", "right_index", "left_thumb", "right_thumb", "left_hip",
    "right_hip", "left_knee", "right_knee", "left_ankle", "right_ankle", "left_heel",
    "right_heel", "left_foot_index", "right_foot_index",
)  # fmt: skip
#: The names of the points of each kind.
NAMED: Final = {"face": (*MESH_POINTS, *IRIS_POINTS), "hand": HAND_POINTS, "pose": POSE_POINTS}
#: The lines of a skeleton. Those whose points a model does not find are left out.
BODY_BONES: Final = (
    ("nose", "left_eye"), ("left_eye", "left_ear"), ("nose", "right_eye"),
    ("right_eye", "right_ear"), ("nose", "left_shoulder"), ("left_shoulder", "left_elbow"),
    ("left_elbow", "left_wrist"), ("left_shoulder", "left_hip"), ("left_hip", "left_knee"),
    ("left_knee", "left_ankle"), ("nose", "right_shoulder"),
    ("right_shoulder", "right_elbow"), ("right_elbow", "right_wrist"),
    ("right_shoulder", "right_hip"), ("right_hip", "right_knee"),
    ("right_knee", "right_ankle"),
)  # fmt: skip
#: More lines, for the points that only BlazePose finds.
POSE_BONES: Final = (
    *BODY_BONES,
    ("mouth_left", "mouth_right"),
    ("left_wrist", "left_thumb"), ("left_wrist", "left_index"), ("left_wrist", "left_pinky"),
    ("left_index", "left_pinky"), ("right_wrist", "right_thumb"), ("right_wrist", "right_index"),
    ("right_wrist", "right_pinky"), ("right_index", "right_pinky"),
    ("left_ankle", "left_heel"), ("left_heel", "left_foot_index"),
    ("left_ankle", "left_foot_index"), ("right_ankle", "right_heel"),
    ("right_heel", "right_foot_index"), ("right_ankle", "right_foot_index"),
)  # fmt: skip


def point_names(model: str, task: str) -> Sequence[str] | None:
    """Return the names of the points that a model finds; None if they are not known.

    >>> "nose" in point_names("blazeface", "faces"), point_names("nanodet", "detect")
    (True, ())
    """
    by_task = {"faces": FACE_POINTS, "poses": BODY_POINTS, "hands": HAND_POINTS, "detect": ()}
    by_model = {"facemesh": NAMED["face"], "blazepose": POSE_POINTS}
    return by_model.get(model, by_task.get(task))


#: Lines of a face as paths along the mesh: the oval of the face, lips, eyes and eyebrows.
FACE_PATHS: Final = (
    (10, 338, 297, 332, 284, 251, 389, 356, 454, 323, 361, 288, 397, 365, 379, 378, 400, 377, 152,
     148, 176, 149, 150, 136, 172, 58, 132, 93, 234, 127, 162, 21, 54, 103, 67, 109, 10),
    (61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291, 409, 270, 269, 267, 0, 37, 39, 40, 185, 61),
    (78, 95, 88, 178, 87, 14, 317, 402, 318, 324, 308, 415, 310, 311, 312, 13, 82, 81, 80, 191, 78),
    (33, 7, 163, 144, 145, 153, 154, 155, 133, 173, 157, 158, 159, 160, 161, 246, 33),
    (263, 249, 390, 373, 374, 380, 381, 382, 362, 398, 384, 385, 386, 387, 388, 466, 263),
    (46, 53, 52, 65, 55), (70, 63, 105, 66, 107),
    (276, 283, 282, 295, 285), (300, 293, 334, 296, 336),
)  # fmt: skip
#: The edges of the irises, for a mesh that has them.
IRIS_PATHS: Final = ((469, 470, 471, 472, 469), (474, 475, 476, 477, 474))
