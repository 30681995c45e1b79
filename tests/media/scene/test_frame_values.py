"""Expressions over the pixels of rendered frames keep the values of their time."""

from __future__ import annotations

import numpy as np

from dala.media.scene import Scene


def test_expressions_over_frames_keep_their_values(engine_id):
    with Scene(4, 2, background=(10, 20, 30, 255)) as scene:
        frame = scene.render()
        before = np.array(frame.pixels.read_list())
        doubled = frame.pixels.astype("s32") * 2
        del frame
        for number in range(4):  # more than there are framebuffers
            scene.add_image(np.full((2, 4, 4), 100 + number, np.uint8))
            scene.render()
        assert doubled.reshape(-1).read_list() == list(before * 2)


def test_closing_a_scene_keeps_their_values(engine_id):
    scene = Scene(4, 2, background=(10, 20, 30, 255))
    total = scene.render().pixels.astype("f32") + 0.5
    scene.close()
    assert total[0, 0].tolist() == [10.5, 20.5, 30.5, 255.5]
