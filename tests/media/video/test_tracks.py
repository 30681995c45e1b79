"""Everything in a container besides its pictures: kept, converted or listed."""

from __future__ import annotations

import io
import json
import re
from contextlib import ExitStack
from fractions import Fraction

import numpy as np
import pytest
from PIL import Image

from dala.cli import main
from dala.errors import ParameterError, VideoError
from dala.media import video
from dala.media.notices import MediaNotice
from dala.media.video.tracks import Tracks
from tests.cli.test_filter import CPU
from tests.media.video.clips import av, encode, numbered, packets

SRT = """1
00:00:00,200 --> 00:00:00,500
<i>Salut</i> toi

2
00:00:00,600 --> 00:00:00,900
Deux

3
00:00:01,400 --> 00:00:01,500
Trop tard
"""
FONT = b"not really a font"


def picture(kind):
    file = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(file, kind)
    return file.getvalue()


def add_sound(out, stream, seconds, start=0.0):
    rate = stream.codec_context.sample_rate
    size = 1024
    layout = stream.codec_context.layout.name
    for i in range(round(seconds * rate) // size):
        wave = np.sin((np.arange(size) + i * size) * 0.05)[None] * 0.4
        wave = wave.repeat(stream.codec_context.channels, axis=0)
        chunk = av.AudioFrame.from_ndarray(wave.astype(np.float32), "fltp", layout)
        chunk.sample_rate, chunk.time_base = rate, Fraction(1, rate)
        chunk.pts = i * size + round(start * rate)
        out.mux(stream.encode(chunk))
    out.mux(stream.encode(None))


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """Ten pictures in a second; longer sound in two codecs, subtitles, and the rest."""
    path = tmp_path_factory.mktemp("tracks") / "full.mkv"
    path.with_suffix(".srt").write_text(SRT)
    with ExitStack() as held, av.open(str(path), "w") as out:
        out.metadata["title"] = "My film"
        out.metadata["artist"] = "Ann"
        out.set_chapters([
            {"id": n, "start": n * 500, "end": n * 500 + 500, "time_base": Fraction(1, 1000),
             "metadata": {"title": name}}
            for n, name in enumerate(("One", "Two"))
        ])  # fmt: skip
        shown = out.add_stream("libx264", rate=10)
        shown.width, shown.height, shown.pix_fmt = 64, 48, "yuv420p"
        shown.metadata["language"] = "ita"
        vorbis = out.add_stream("vorbis", rate=48000, layout="stereo", options={"strict": "-2"})
        vorbis.metadata.update(language="deu", title="Ton")
        vorbis.disposition = 0
        aac = out.add_stream("aac", rate=48000, layout="mono")
        aac.metadata["language"] = "eng"
        aac.disposition = 1
        written = held.enter_context(av.open(str(path.with_suffix(".srt"))))
        words = out.add_stream_from_template(written.streams[0])
        words.metadata["language"] = "fra"
        words.disposition = 64  # forced
        out.add_attachment("font.ttf", "font/ttf", FONT)
        out.add_attachment("cover.png", "image/png", picture("PNG"))
        out.start_encoding()
        for packet in written.demux():
            if packet.size:
                packet.stream = words
                out.mux_one(packet)
        for n, frame in enumerate(numbered(10)):
            frame.pts, frame.time_base = n, Fraction(1, 10)
            out.mux(shown.encode(frame))
        out.mux(shown.encode(None))
        add_sound(out, vorbis, 1.6)
        add_sound(out, aac, 1.6)
    return path


def facts(path):
    """Return codec, language and disposition of all streams, by kind."""
    with av.open(str(path)) as box:
        found = {}
        for stream in box.streams:
            context = stream.codec_context
            codec = context.codec.canonical_name if context else stream.name
            row = codec, stream.metadata.get("language", ""), int(stream.disposition)
            found.setdefault(stream.type, []).append(row)
        titles = [c["metadata"].get("title") for c in box.chapters()]
        return found, titles, {k.lower(): v for k, v in box.metadata.items()}


def words_of(path):
    """Return the times and texts of the first subtitle track."""
    found = []
    with av.open(str(path)) as box:
        for packet in box.demux(subtitles=0):
            made = packet.stream.codec_context.decode2(packet) if packet.size else None
            for line in made or ():
                text = line.ass.decode().split(",", 8)[-1].replace("{\\r}", "{\\i0}")
                found.append((round(float(packet.pts * packet.time_base), 2), text))
    return found


def filtered(capsys, full, out, *options):
    capsys.readouterr()
    assert main(["filter", str(full), str(out), "--invert", "--json", *options, *CPU]) == 0
    return json.loads(capsys.readouterr().out)["notices"]


def test_matroska_keeps_everything(full, tmp_path, capsys):
    out = tmp_path / "out.mkv"
    assert filtered(capsys, full, out) == []
    found, chapters, tags = facts(out)
    before, _, _ = facts(full)
    assert found.pop("video")[0][:2] == ("h264", "ita")
    before.pop("video")
    assert found == before
    assert chapters == ["One", "Two"]
    assert (tags["title"], tags["artist"]) == ("My film", "Ann")
    with av.open(str(out)) as box:
        assert [bytes(a.data) for a in box.streams.attachments] == [FONT]
        cover = [v for v in box.streams.video if int(v.disposition) & 1024]
        assert [bytes(p) for p in box.demux(cover) if p.size] == [picture("PNG")]
        assert box.streams.audio[0].metadata["title"] == "Ton"
    assert words_of(out) == [(0.2, "{\\i1}Salut{\\i0} toi"), (0.6, "Deux")]


def test_sound_ends_with_the_picture(full, tmp_path, capsys):
    out = tmp_path / "out.mkv"
    filtered(capsys, full, out, "--no-audio")
    assert "audio" not in facts(out)[0]
    assert facts(out)[1] == ["One", "Two"]
    for given in ("audio_from", "tracks_from"):
        with video.write(out, fps=10, **{given: full}) as sink:
            for _ in range(10):
                sink.write(np.zeros((48, 64, 3), np.uint8))
        sound = packets(out, "audio")
        assert sound == packets(full, "audio")[: len(sound)]
        assert Fraction(97, 100) <= sound[-1][0] < 1


@pytest.mark.parametrize(
    ("kind", "sound", "text", "converted", "left"),
    [
        ("mp4", ["aac", "aac"], "mov_text", 2, "attachment 'font.ttf'."),
        ("webm", ["vorbis", "opus"], "webvtt", 2, "attachment 'font.ttf', cover picture"),
        ("avi", ["mp3", "aac"], "", 1, "subtitle track 3 (subrip, fra), attachment 'font.ttf'"),
        ("ts", ["aac", "aac"], "", 1, ", 2 chapters."),
    ],
)
def test_other_containers(full, tmp_path, capsys, kind, sound, text, converted, left):
    out = tmp_path / f"out.{kind}"
    said = filtered(capsys, full, out)
    assert len(said) == 2
    assert f"{full}: converted for " in said[0]
    assert said[0].count(" to ") == converted
    assert f"{full}: left out, as " in said[1]
    assert left in said[1]
    found, chapters, tags = facts(out)
    assert [row[0] for row in found["audio"]] == sound
    assert chapters == (["One", "Two"] if text else [])
    assert tags.get("title") == ("My film" if kind != "ts" else tags.get("title"))
    if kind != "avi":
        assert [row[1] for row in found["audio"]] == ["deu", "eng"]
    if text:
        assert found["subtitle"] == [(text, "fra", found["subtitle"][0][2])]
        assert words_of(out) == [(0.2, "{\\i1}Salut{\\i0} toi"), (0.6, "Deux")]
        assert [row[2] & 1 for row in found["audio"]] == [0, 1]
    if kind == "mp4":
        assert [row[0] for row in found["video"]] == ["h264", "png"]
    with av.open(str(out)) as box:  # converted sound is as long as the picture, and not silent
        heard = np.concatenate([f.to_ndarray() for f in box.decode(audio=0)], axis=1)
        assert abs(heard.shape[1] / 48000 - 1) < 0.1
        middle = heard[:, 12000:36000].astype(float)
        top = 32768.0 if heard.dtype == np.int16 else 1.0
        assert abs(np.sqrt((middle / top) ** 2).mean() - 0.4 * 2 / np.pi) < 0.02


def test_offsets_stay(tmp_path, capsys):
    """Sound that begins after the picture does so in the copy, and when it is converted."""
    first = tmp_path / "in.mkv"
    with av.open(str(first), "w") as out:
        shown = out.add_stream("libx264", rate=10)
        shown.width, shown.height, shown.pix_fmt = 64, 48, "yuv420p"
        sound = out.add_stream("flac", rate=48000, layout="mono", options={"strict": "-2"})
        for n, frame in enumerate(numbered(10)):
            frame.pts, frame.time_base = n, Fraction(1, 10)
            out.mux(shown.encode(frame))
        out.mux(shown.encode(None))
        wave = np.zeros((1, 4608), np.int16)
        for n in range(5):
            chunk = av.AudioFrame.from_ndarray(wave, "s16", "mono")
            chunk.sample_rate, chunk.time_base = 48000, Fraction(1, 48000)
            chunk.pts = 24000 + n * 4608
            out.mux(sound.encode(chunk))
        out.mux(sound.encode(None))
    for kind in ("mkv", "avi", "webm"):
        out = tmp_path / f"out.{kind}"
        filtered(capsys, first, out)
        with av.open(str(out)) as box:
            starts = {s.type: float(s.start_time * s.time_base) for s in box.streams}
        if kind != "avi":  # which has no times
            assert abs(starts["audio"] - starts["video"] - 0.5) < 0.03


def test_sound_that_cannot_be_copied_is_converted(tmp_path, capsys):
    first = tmp_path / "in.wmv"
    with av.open(str(first), "w") as out:
        shown = out.add_stream("wmv2", rate=10)
        shown.width, shown.height, shown.pix_fmt = 64, 48, "yuv420p"
        sound = out.add_stream("wmav2", rate=48000, layout="mono")
        sound.bit_rate = 64000
        for n, frame in enumerate(numbered(5)):
            frame.pts, frame.time_base = n, Fraction(1, 10)
            out.mux(shown.encode(frame))
        out.mux(shown.encode(None))
        add_sound(out, sound, 0.5)
    said = filtered(capsys, first, tmp_path / "out.mkv")
    assert said == [f"{first}: converted for matroska: audio track 1 (wmav2) to aac."]
    assert [row[0] for row in facts(tmp_path / "out.mkv")[0]["audio"]] == ["aac"]


def test_sound_of_one_file_and_the_rest_of_another(full, tmp_path):
    dub = encode(tmp_path / "dub.mp4", numbered(25), tone=True)
    out = tmp_path / "out.mkv"
    with video.write(out, fps=10, tracks_from=full, audio_from=dub) as sink:
        for _ in range(10):
            sink.write(np.zeros((48, 64, 3), np.uint8))
    found, chapters, _ = facts(out)
    assert [row[0] for row in found["audio"]] == ["aac"]
    sound = [data for _, _, data in packets(out, "audio")]
    assert sound == [data for _, _, data in packets(dub, "audio")][: len(sound)]
    assert (chapters, [row[0] for row in found["subtitle"]]) == (["One", "Two"], ["subrip"])


def test_notices_and_errors(full, tmp_path):
    writer = video.write(tmp_path / "out.webm", fps=10, audio_from=full)
    text = f"{full}: converted for webm: audio track 2 (aac, eng) to opus."
    with pytest.warns(MediaNotice, match=re.escape(text)):
        writer.write(np.zeros((48, 64, 3), np.uint8))
    writer.close()
    sink = video.write(tmp_path / "out.y4m", fps=10, codec="rawvideo", audio_from=full)
    with pytest.raises(VideoError, match=r"audio track 1 \(vorbis, deu\) .* does not fit"):
        sink.write(np.zeros((48, 64, 3), np.uint8))
    with pytest.raises(VideoError, match="cannot open tracks_from"):
        (tmp_path / "text.mkv").write_text("no video")
        video.write(tmp_path / "out.mkv", fps=10, tracks_from=tmp_path / "text.mkv")
    with pytest.raises(ParameterError, match="also the source of the tracks"):
        video.write(full, fps=10, tracks_from=full)
    assert not list(tmp_path.glob("out.[my]*"))


def test_tracks_close(full):
    tracks = Tracks(video.open(full).source, "test", everything=True)
    assert tracks.has_sound
    tracks.close()


def test_sound_with_a_damaged_header_is_left_out(tmp_path):
    """Copied into an MP4, it would make the whole file unreadable."""
    with av.open(str(tmp_path / "whole.mkv"), "w") as out:
        sound = out.add_stream("aac", rate=48000, layout="stereo")
        add_sound(out, sound, 0.2)
        header = bytes(sound.codec_context.extradata)
    data = (tmp_path / "whole.mkv").read_bytes()
    assert header in data
    damaged = tmp_path / "damaged.mkv"
    damaged.write_bytes(data.replace(header, header[:1] + b"\xff" + header[2:]))
    frames = [np.zeros((16, 16, 3), np.uint8)] * 3
    with pytest.warns(MediaNotice, match=r"audio track 0 \(aac\), whose header is damaged"):
        video.write(tmp_path / "out.mp4", frames, fps=10, tracks_from=damaged)
    with video.open(tmp_path / "out.mp4") as reader:
        assert len(list(reader)) == 3
    with pytest.raises(VideoError, match=r"does not fit into .*: its header is damaged"):
        video.write(tmp_path / "sound.mp4", frames, fps=10, audio_from=damaged)
    assert not (tmp_path / "sound.mp4").exists()
