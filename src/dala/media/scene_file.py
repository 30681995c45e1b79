"""Deprecated: the former home of ``load_scene`` and ``scene_to_dict``; use ``dala.media.scene``."""

from __future__ import annotations

import warnings

from dala.media.scene.file.load import load_scene, save_scene, scene_to_dict, schema

__all__ = ["load_scene", "save_scene", "scene_to_dict", "schema"]

warnings.warn(
    "dala.media.scene_file is deprecated. Import load_scene and scene_to_dict from "
    "dala.media.scene.",
    DeprecationWarning,
    stacklevel=2,
)
