"""Where options are found that are in copies of modules only: tests/unit/test_unseen_options.py."""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from importlib import import_module

import numpy as np

from dala import batch, ml, samples
from dala.batch.chains import pack_chain
from dala.batch.jobs import BatchJob
from dala.batch.video.work import encoder_settings
from dala.cli.common.chain import params
from dala.media import Scene, audio, gpu, live, video
from dala.media.audio.effects import EFFECTS
from dala.media.scene.file.load import schema
from dala.media.scene.file.save import scene_to_dict
from dala.media.scene.nodes.effect import params_object
from dala.ml.gpu import load_model, load_model_async
from dala.ml.results import Detections
from dala.studio.catalogue.catalogue import catalogue
from dala.studio.limits import StudioLimits
from tests.support import filter_stubs, scene_stub
from tests.support.option_stubs import keywords


class Target:
    turns = False

    def __init__(self, video):
        self.video = video

    def find(self, shown, wait):
        return None

    def saved(self):
        return None


def said(call, **options):
    try:
        call(**options)
    except Exception as error:
        return str(error)


def arguments(command):
    return import_module(f"dala.cli.{command}").ARGUMENTS


def main(places, groups, keys):
    """Print where the options are found, as JSON."""
    scene = Scene(8, 8, device="cpu")
    box = scene.add_overlay(color="red", size=(4, 4))
    beep, voice = (scene.add_audio(audio.tone(440, 0.1, rate=8000)) for _ in range(2))
    bars = samples.video("bars")
    tone = audio.tone(440, 0.1, rate=8000)
    film = scene.add_video([np.zeros((4, 4, 3), np.uint8)] * 2)
    picture = np.zeros((4, 4, 3), np.uint8)
    videos = batch.videos("in.mp4", out="a.mp4", chain=["invert"], device="cpu")

    #: Each call, with arguments that are fine.
    calls = {
        "video.open": (video.open, lambda **o: video.open("in.mp4", **o)),
        "video.write": (video.write, lambda **o: video.write("a.mp4", **o)),
        "Scene.render_to": (Scene.render_to, lambda **o: scene.render_to("a.mp4", 1, **o)),
        "Scene.live": (Scene.live, lambda **o: scene.live("udp://127.0.0.1:9", **o)),
        "Scene.follow": (Scene.follow, lambda **o: scene.follow(box, Target(film), **o)),
        "Scene.duck": (Scene.duck, lambda **o: scene.duck(beep, under=voice, **o)),
        "Scene.level": (Scene.level, lambda **o: scene.level(beep, **o)),
        "Scene.side_by_side": (Scene.side_by_side, lambda **o: scene.side_by_side([box], **o)),
        "Scene.stack": (Scene.stack, lambda **o: scene.stack([box], **o)),
        "Scene.grid": (Scene.grid, lambda **o: scene.grid([box], **o)),
        "live.open": (live.open, lambda **o: live.open("udp://127.0.0.1:9", (64, 64), **o)),
        "live.send": (live.send, lambda **o: live.send(bars, "udp://127.0.0.1:9", **o)),
        "batch.videos": (
            batch.videos,
            lambda **o: batch.videos("in.mp4", out="a.mp4", chain=["invert"], **o),
        ),
        "batch.scenes": (batch.scenes, lambda **o: batch.scenes("in.json", "a.mp4", **o)),
        "batch.images": (
            batch.images,
            lambda **o: batch.images("in.png", "a.png", ["invert"], **o),
        ),
        "batch.detect": (batch.detect, lambda **o: batch.detect("in.png", **o)),
        "batch.classify": (batch.classify, lambda **o: batch.classify("in.png", **o)),
        "batch.faces": (batch.faces, lambda **o: batch.faces("in.png", **o)),
        "Job.run": (BatchJob.run, lambda **o: videos.run(**o)),
        "load_model": (load_model, lambda **o: load_model("blazeface", **o)),
        "load_model_async": (
            load_model_async,
            lambda **o: asyncio.run(load_model_async("blazeface", **o)),
        ),
        "draw": (Detections.draw, lambda **o: Detections().draw(picture, **o)),
        "watch": (ml.watch, lambda **o: ml.watch(film, "blazeface", **o)),
        **{f"Audio.{name}": (getattr(audio.Audio, name), getattr(tone, name)) for name in EFFECTS},
        "FaceHider": (ml.FaceHider, lambda **o: ml.FaceHider(**o)),
    }

    cards = catalogue(StudioLimits())
    shapes = schema()
    found = {}
    for group, (name, given, commands) in groups.items():
        module = next(m for m in places if hasattr(import_module(m), group))
        head = f"class {group.replace('Options', 'Keywords')}(TypedDict"
        stub = keywords(import_module(module)).partition(head)[2].partition("class ")[0]
        listed = json.dumps(shapes["properties"][keys[group]]) if group in keys else ""
        found[group] = {
            "signatures": [str(inspect.signature(calls[c][0]).parameters.get(name)) for c in given],
            "docs": [f"{name}: film patina." in calls[c][0].__doc__ for c in given],
            "errors": [said(calls[c][1], **{name: 12}) for c in given],
            "stub": f"    {name}: int" in stub,
            "help": [
                arguments(c).get(f"--{name.replace('_', '-')}", {}).get("help") for c in commands
            ],
            "card": [card for card in cards["render"] if card["name"] == name],
            "key": f'"{name}": {{' in listed,
        }

    own = {f"patina_{name}": 5 for name in ("encoder", "decoder", "filter", "job", "videojob")}
    job = calls["batch.videos"][1](device="cpu", **own)
    rendering = {f"patina_{name}": 5 for name in ("encoder", "job", "scenejob")}
    scenes = calls["batch.scenes"][1](device="cpu", **rendering)
    pictures = calls["batch.images"][1](device="cpu", patina_picture=5, patina_picturejob=5)
    table = calls["batch.faces"][1](device="cpu", provider="cpu", patina_modeljob=5)
    with Scene(8, 8, device="cpu") as other:
        other.add_shape("M0 0L1 0L1 1Z", patina=5)
        saved = scene_to_dict(other)["nodes"][0]
    sepia = next(row for row in cards["filters"] if row["name"] == "sepia")
    shape = next(row for row in cards["nodes"] if row["type"] == "shape")
    sys.stdout.write(
        json.dumps(
            {
                "groups": found,
                "records": [
                    [made.spec[name] for name in given]
                    for made, given in (
                        (job, own),
                        (scenes, rendering),
                        (pictures, ["patina_picture", "patina_picturejob"]),
                        (table, ["patina_modeljob"]),
                    )
                ],
                "worker": encoder_settings(job.spec, "a.mp4").patina_encoder,
                "misspelled": said(calls["video.write"][1], pattina=2),
                "filter": {
                    "signature": str(inspect.signature(gpu.sepia).parameters["patina"]),
                    "stub": "patina: int = 3" in filter_stubs.stub("gpu"),
                    "help": list(params("sepia")),
                    "card": [p["slider"] for p in sepia["params"] if p["name"] == "patina"],
                    "key": params_object("sepia").fields["patina"].kind.schema()["maximum"],
                    "record": pack_chain(
                        [("sepia", {"patina": 5})], lambda data, suffix: "", "batch.videos"
                    ),
                    "error": said(lambda: gpu.sepia(picture, patina=12)),
                },
                "node": {
                    "signature": str(inspect.signature(Scene.add_shape).parameters["patina"]),
                    "stub": "patina: float = 3.0" in scene_stub.stub(),
                    "card": [p["default"] for p in shape["params"] if p["name"] == "patina"],
                    "key": shapes["$defs"]["shape"]["properties"]["patina"]["maximum"],
                    "record": saved["patina"],
                    "error": said(lambda: scene.add_shape("M0 0L1 0L1 1Z", patina=12)),
                },
            }
        )
    )
