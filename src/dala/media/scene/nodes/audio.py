"""Sound in scenes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar, Final

from dala.errors import DalaError, FreedError, ParameterError
from dala.media.audio.arriving import LiveSound
from dala.media.audio.audio import Audio
from dala.media.audio.checks import CURVES
from dala.media.audio.effects import EFFECTS, Effect, check_effects
from dala.media.audio.files.decode import sound_source
from dala.media.audio.mixing.blocks import FileSound
from dala.media.scene.nodes import json_types as j
from dala.media.scene.nodes import property_types as t
from dala.media.scene.nodes.node import Content, Node, NotNamed
from dala.media.scene.nodes.properties import REQUIRED, Argument, Property
from dala.media.scene.nodes.times import PLAY_ARGUMENTS, whole

#: Samples per second of scenes.
_RATE: Final = 48000
#: Seconds to wait for a live stream.
_TIMEOUT: Final = 10.0

#: How loud a node is and where; also of videos.
VOLUME: Final[t.NumberType] = t.NumberType(0.0, 1000.0)
PAN: Final[t.NumberType] = t.NumberType(-1.0, 1.0)


_EFFECT: Final[j.Schema] = {
    "type": "array", "prefixItems": [{"enum": list(EFFECTS)}, {"type": "object"}],
    "minItems": 2, "maxItems": 2,
}  # fmt: skip
_EFFECTS: Final = j.ParsedValue(
    "a list such as [['compressor', {'ratio': 4}]]", list,
    lambda value: check_effects("add_audio", value, _RATE),
    {"type": "array", "items": _EFFECT},
)  # fmt: skip


class AudioNode(Node):
    """Sound: a file, a URL, an Audio or a microphone. It is heard, and not drawn.

    The whole scene is mixed at 48 kHz in stereo, exact to the sample against its clock; files are
    streamed. Sound is written by ``render_to`` and played by ``play``. Microphones, and URLs of
    live streams, are heard in ``live``.

    >>> import dala
    >>> from dala.media import audio
    >>> with dala.media.Scene(64, 36, device="cpu") as scene:
    ...     music = scene.add_audio(audio.tone(220, 2), volume=0.5, fade_in=0.5, loop=True)
    ...     fall = scene.add_animation(music, "volume", 0.5, 0, duration=1, start=8)
    ...     music
    <AudioNode audio-1, 2 s>
    """

    type = "audio"
    DRAWN = False
    WITHOUT = (
        "x", "y", "width", "height", "position", "size", "anchor", "scale", "rotation", "opacity",
        "z_index", "visible", "fit", "crop", "blend", "radius", "border_width", "border_color",
        "border", "shadow", "margin",
    )  # fmt: skip
    OWN_ARGUMENTS: ClassVar[dict[str, Argument]] = {
        "source": Argument(
            t.PathType("Audio | LiveSound | str | os.PathLike[str]"),
            "A file (relative to the scene file), a URL, an Audio, or a microphone: an open one, "
            "or its name, as in 'microphone://default'.",
            default=REQUIRED,
        ),
        "track": Argument(
            t.PropertyType(
                j.OneOf(
                    j.JsonNumber(0, 1000, integer=True), j.JsonString("a language", shortest=1)
                ),
                "int | str",
            ),
            "Number or language of the file's sound track.",
            default=0,
        ),
        "effects": Argument(
            t.PropertyType(_EFFECTS, "Sequence[tuple[str, Mapping[str, EffectValue]]]"),
            "Effects in order, such as [('eq', {'bass': 3}), ('compressor', {})].",
        ),
        **{name: PLAY_ARGUMENTS[name] for name in ("trim", "speed", "loop")},
    }
    POSITIONAL = ("source",)
    __slots__ = ("_length", "_named", "effect_list", "layout", "sound", "track")

    volume = Property(1.0, VOLUME, "Factor of the samples; 1 leaves them as they are.")
    pan = Property(
        0.0, PAN, "From -1, left, to 1, right, by equal power; 0 leaves mono and stereo alone."
    )
    fade_in = Property(
        0.0, t.NumberType(0.0), "Duration of a rise from silence.", unit="seconds", animatable=False
    )
    fade_out = Property(
        0.0, t.NumberType(0.0), "Duration of a fall to silence before the end.", unit="seconds",
        animatable=False,
    )  # fmt: skip
    curve = Property("linear", t.ChoiceType(CURVES), "Shape of the fades.")

    def prepare(self, given: t.Values) -> None:
        """Take the arguments that are not properties."""
        call = "add_audio"
        #: What is heard: an Audio, a file, or sound that arrives.
        self.sound: Audio | LiveSound | str | os.PathLike[str] = given.pop("source", None)
        self.track = whole(given.pop("track", 0))
        self.effect_list: list[Effect] = check_effects(call, given.pop("effects", []), _RATE)
        if isinstance(self.sound, Audio) and self.sound.start and given.get("start") is None:
            given["start"] = self.sound.start
        #: The name of a live source that the node has opened itself.
        self._named: str | None = None
        if isinstance(self.sound, str) and (opened := _opened(self.sound, call)) is not None:
            self._named, self.sound = self.sound, opened
        self._length, self.layout = self._look(call)

    def ready(self) -> None:
        """Refuse times of live sound."""
        played = self.clip.plain and self.clip.runs == 1
        if isinstance(self.sound, LiveSound) and not played:
            raise ParameterError(
                "add_audio: loop, speed and trim do not apply to live sound. Leave them out."
            )

    def _look(self, call: str) -> tuple[Fraction | None, str]:
        """Return the seconds of the sound and its layout; raise an error if there is none."""
        sound = self.sound
        if isinstance(sound, Audio):
            return sound.duration, "mono" if sound.channels == 1 else "stereo"
        if isinstance(sound, LiveSound):
            if sound.closed:
                raise FreedError(f"{call}: {sound.label} is closed. Open it again.")
            return None, "stereo"
        if not isinstance(sound, str | os.PathLike):
            expected = "an Audio, the path of a file, or an open microphone"
            raise ParameterError.invalid(call, "source", expected, sound)
        try:
            opened = FileSound(sound, _RATE, track=self.track, call=call)
        except DalaError as error:
            raise error.within(call) from None
        try:
            length = opened.length
            return None if length is None else Fraction(length, _RATE), opened.layout
        finally:
            opened.close()

    def saved_arguments(self) -> t.Values:
        """Return the file, its track, the effects and the times."""
        source: object = self._named or self.sound
        if not isinstance(source, str | os.PathLike):
            kind = "an open microphone" if isinstance(source, LiveSound) else "an Audio"
            source = NotNamed(kind)
        made: t.Values = {"source": source}
        if self.track != 0:
            made["track"] = self.track
        if self.effect_list:
            made["effects"] = [[name, _own(name, given)] for name, given in self.effect_list]
        return made | super().saved_arguments()

    def length(self) -> Fraction | None:
        """Return the seconds of the whole sound, as far as they are known."""
        return self._length

    def changed(self, item: Property | None = None) -> None:
        """Nothing is drawn again; only times matter to the scene."""
        if item is not None and item.name in ("start", "end"):
            super().changed(item)

    def content(self) -> Content | None:
        """Return None: sound is not drawn."""
        return None

    def release(self) -> None:
        """Close a microphone or stream that the node has opened."""
        if self._named is not None and isinstance(self.sound, LiveSound):
            self.sound.close()

    def natural(self) -> tuple[float, float]:
        """Return (0, 0): sound has no size."""
        return 0.0, 0.0

    def __repr__(self) -> str:
        length = "" if self._length is None else f", {float(self._length):g} s"
        return f"<AudioNode {self.id}{length}>"


def _opened(name: str, call: str) -> LiveSound | None:
    """Return the sound of a microphone or a live stream that a name means; None for files."""
    from dala.media.microphone import functions

    if name.startswith(functions.SCHEME):
        try:
            return functions.named(name)
        except DalaError as error:
            raise error.within(call) from None
    if "://" not in name or not (source := sound_source(name, call)).live:
        return None
    lasting = replace(source, reconnect=functions.RECONNECT)
    return functions.SoundCapture(lasting, _TIMEOUT, call).start()


def _own(name: str, given: Mapping[str, object]) -> dict[str, j.JsonValue]:
    """Return the parameters of an effect that are not the default ones."""
    changed = EFFECTS[name](**given).changed()
    return {k: [*map(list, v)] if isinstance(v, Sequence) else v for k, v in changed.items()}
