"""``dala filter``: results, order, names and errors."""

import json
import os

import numpy as np
import pytest
from PIL import Image

from dala.cli import main
from dala.media import Frame, effects, gpu
from dala.png import encode_png

CPU = ["--device", "cpu"]


def picture(seed=1, height=30, width=40, channels=3):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (height, width, channels), np.uint8)


@pytest.fixture
def source(tmp_path):
    Image.fromarray(picture()).save(tmp_path / "in.png")
    return tmp_path / "in.png"


def pixels(path):
    with Image.open(path) as image:
        return np.asarray(image)


def fails(capsys, *arguments):
    """Run a command that must fail with one line; return the line."""
    try:
        code = main(["filter", *map(str, arguments), *CPU])
    except SystemExit as end:
        code = end.code
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith("dala filter: ")
    return err


def works(*arguments):
    assert main(["filter", *CPU, *map(str, arguments)]) == 0


# pictures ---------------------------------------------------------------------------------------
def test_filters_run_in_the_order_given(source, tmp_path):
    works(source, tmp_path / "a.png", "--invert", "--blur", "radius=3,sigma=1.5", "--gamma", "2")
    works(source, tmp_path / "b.png", "--gamma", "2", "--blur", "radius=3,sigma=1.5", "--invert")
    p = picture()
    a = gpu.gamma(gpu.blur(gpu.invert(p, device="cpu"), radius=3, sigma=1.5, device="cpu"),
                  value=2, device="cpu")  # fmt: skip
    b = gpu.invert(gpu.blur(gpu.gamma(p, value=2, device="cpu"), radius=3, sigma=1.5, device="cpu"),
                   device="cpu")  # fmt: skip
    # A pipeline keeps more than bytes between its stages.
    assert np.abs(pixels(tmp_path / "a.png").astype(int) - a).max() <= 2
    assert np.abs(pixels(tmp_path / "b.png").astype(int) - b).max() <= 2
    assert np.abs(a.astype(int) - b).max() > 20


@pytest.mark.parametrize("arguments", [
    ["IN", "OUT", "--sepia"],
    ["--sepia", "--", "IN", "OUT"],
    ["--sepia", "1", "IN", "OUT"],
    ["IN", "OUT", "--sepia=amount=1"],
    ["IN", "OUT", "--sepia", "1"],
])  # fmt: skip
def test_position_of_filters(source, tmp_path, arguments):
    out = tmp_path / "out.png"
    works(*({"IN": source, "OUT": out}.get(word, word) for word in arguments))
    assert (pixels(out) == gpu.sepia(picture(), device="cpu")).all()


@pytest.mark.parametrize(("option", "call"), [
    (["--brightness", "-0.2"], lambda p: gpu.brightness(p, value=-0.2, device="cpu")),
    (["--resize", "size=20x10"], lambda p: gpu.resize(p, size=(20, 10), device="cpu")),
    (["--resize", "20x10"], lambda p: gpu.resize(p, size=(20, 10), device="cpu")),
    (["--resize", "20x"], lambda p: gpu.resize(p, size=(20, 15), device="cpu")),
    (["--resize", "x60"], lambda p: gpu.resize(p, size=(80, 60), device="cpu")),
    (["--resize", "20x20,fit=cover"],
     lambda p: gpu.resize(p, size=(20, 20), fit="cover", device="cpu")),
    (["--resize", "20x20,fit=letterbox"],
     lambda p: gpu.resize(p, size=(20, 20), fit="pad", device="cpu")),
    (["--thumbnail", "16"], lambda p: gpu.thumbnail(p, size=16, device="cpu")),
    (["--thumbnail", "16x9"], lambda p: gpu.thumbnail(p, size=(16, 9), device="cpu")),
    (["--blur", "2"], lambda p: gpu.blur(p, radius=2, device="cpu")),
    (["--sharpen", "0.3"], lambda p: gpu.sharpen(p, amount=0.3, device="cpu")),
    (["--chroma_key", "key=0:0:1,threshold=0.2"],
     lambda p: gpu.chroma_key(p, key=(0, 0, 1), threshold=0.2, device="cpu")),
    (["--chroma-key", "threshold=0.2"], lambda p: gpu.chroma_key(p, threshold=0.2, device="cpu")),
    (["--grade", "gain=1.2:1:0.8"], lambda p: effects.grade(p, gain=(1.2, 1, 0.8), device="cpu")),
    (["--curves", "master=0:0.2:1:0.8"],
     lambda p: effects.curves(p, master=[(0, 0.2), (1, 0.8)], device="cpu")),
    (["--resize", "size=20x10,method=nearest,antialias=false"],
     lambda p: gpu.resize(p, size=(20, 10), method="nearest", antialias=False, device="cpu")),
])  # fmt: skip
def test_parameters(source, tmp_path, option, call):
    works(source, tmp_path / "out.png", *option)
    assert (pixels(tmp_path / "out.png") == call(picture())).all()


def test_files_as_parameters(source, tmp_path):
    other = picture(2)
    Image.fromarray(other).save(tmp_path / "other.png")
    works(source, tmp_path / "mix.png", "--video_mix", f"second={tmp_path / 'other.png'},t=0.25")
    expected = gpu.video_mix(picture(), other, t=0.25, device="cpu")
    assert (pixels(tmp_path / "mix.png") == expected).all()
    cube = tmp_path / "swap.cube"  # red and blue exchanged
    rows = [f"{b} {g} {r}" for b in (0, 1) for g in (0, 1) for r in (0, 1)]
    cube.write_text("LUT_3D_SIZE 2\n" + "\n".join(rows) + "\n")
    works(source, tmp_path / "lut.png", "--lut", cube)
    assert (pixels(tmp_path / "lut.png") == picture()[..., ::-1]).all()
    at = np.stack(np.meshgrid(np.arange(39, -1, -1), np.arange(30)), -1).astype(np.float32)
    np.save(tmp_path / "map.npy", at)
    works(source, tmp_path / "map.png", "--remap", f"map={tmp_path / 'map.npy'}")
    assert (pixels(tmp_path / "map.png") == picture()[:, ::-1]).all()


def test_a_box_is_checked_against_the_picture(tmp_path, capsys):
    wide = np.arange(100 * 80 * 3, dtype=np.uint8).reshape(80, 100, 3)
    Image.fromarray(wide).save(tmp_path / "wide.png")
    works(tmp_path / "wide.png", tmp_path / "out.png", "--crop", "66:10:100:80")
    assert (pixels(tmp_path / "out.png")[..., :3] == wide[10:80, 66:]).all()
    capsys.readouterr()
    for box, text in (("66:10:101:80", "picture of 100 x 80"), ("66:10:30:80", "left < right")):
        assert text in fails(capsys, tmp_path / "wide.png", tmp_path / "x.png", "--crop", box)


def test_every_filter_is_an_option(capsys):
    with pytest.raises(SystemExit):
        main(["filter", "--help"])
    out = capsys.readouterr().out
    assert [name for name in gpu.filters() if f"--{name} " not in out] == []
    assert "examples:" in out


def test_sixteen_bit_gray(tmp_path):
    deep = (np.arange(200, dtype=np.uint16) * 300).reshape(10, 20)
    Image.fromarray(deep).save(tmp_path / "deep.png")
    works(tmp_path / "deep.png", tmp_path / "out.png", "--invert")
    assert (pixels(tmp_path / "out.png") == 65535 - deep).all()
    works(tmp_path / "deep.png", tmp_path / "out.jpg", "--invert", "--quality", "100")
    assert np.abs(pixels(tmp_path / "out.jpg").astype(int) - (65535 - deep) / 257).max() < 4


def test_json(source, tmp_path, capsys):
    works(source, tmp_path / "out.png", "--blur", "radius=2", "--json")
    report = json.loads(capsys.readouterr().out)
    assert report["device"] == "cpu"
    assert report["filters"] == [{"filter": "blur", "radius": 2}]
    made = {"in": str(source), "out": str(tmp_path / "out.png"), "width": 40, "height": 30}
    assert (report["made"], report["failed"]) == ([made], [])


# many pictures ----------------------------------------------------------------------------------
@pytest.mark.parametrize("pattern", ["many", "many/*.png", None])
def test_many_pictures(tmp_path, pattern, capsys):
    folder = tmp_path / "many"
    folder.mkdir()
    for seed in range(6):
        Image.fromarray(picture(seed, 8 + seed, 9)).save(folder / f"{seed}.png")
    (folder / "notes.txt").write_text("no picture")
    names = sorted(folder.glob("*.png")) if pattern is None else [tmp_path / pattern]
    works(*names, tmp_path / "out", "--invert")
    made = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert made == [f"{seed}.png" for seed in range(6)]
    for seed in range(6):
        assert (pixels(tmp_path / "out" / f"{seed}.png") == 255 - picture(seed, 8 + seed, 9)).all()
    assert "6 pictures" in capsys.readouterr().out


def test_failures_do_not_stop_the_others(tmp_path, capsys):
    folder = tmp_path / "many"
    folder.mkdir()
    Image.fromarray(picture()).save(folder / "good.png")
    (folder / "bad.png").write_bytes((folder / "good.png").read_bytes()[:300])
    assert main(["filter", str(folder), str(tmp_path / "out"), "--invert", *CPU]) == 2
    out, err = capsys.readouterr()
    assert "1 picture in" in out
    assert "1 failed" in out
    assert str(folder / "bad.png") in err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["good.png"]


# errors ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("option", "message"), [
    (["--resize", "9x9", "--fit", "cover"], "a parameter of resize: --resize 9x9,fit=.."),
    (["--sepai"], "--sepai: no such filter or option. Did you mean 'sepia'?"),
    (["--blur", "radus=3"], "--blur: no parameter 'radus'. Did you mean 'radius'?"),
    (["--invert", "x=1"], "--invert: takes no value, got 'x=1'."),
    (["--blur", "radius=3,radius=4"], "radius is given twice"),
    (["--blur", "radius=900"], "from 0 to 200, got 900"),
    (["--resize"], "--resize: missing required parameter 'size'"),
    (["--resize", "size=12"], "size must be WxH such as 640x360, or 640x"),
    (["--curves", "master=0:1:2"], "points x:y:x:y"),
    (["--lut"], "--lut: missing a file"),
    (["--lut", "nowhere.cube"], "lut: there is no file 'nowhere.cube'"),
    (["--overlay_alpha", "over=nowhere.png"], "over: there is no file 'nowhere.png'"),
    (["--sepia", "--max-pixels", "1199"], "has 40 x 30 pixels, more than max_pixels=1,199"),
    ([], "name at least one filter"),
])  # fmt: skip
def test_filter_errors(source, tmp_path, capsys, option, message):
    assert message in fails(capsys, source, tmp_path / "out.png", *option)
    assert [path.name for path in tmp_path.iterdir()] == ["in.png"]


def test_path_errors(source, tmp_path, capsys):
    before = source.read_bytes()
    out = tmp_path / "out.png"
    assert "there is no file" in fails(capsys, tmp_path / "no.png", out, "--sepia")
    assert "no file matches" in fails(capsys, tmp_path / "*.gif", out, "--sepia")
    assert "IN and OUT are required" in fails(capsys, source, "--sepia")
    assert "is not overwritten" in fails(capsys, source, source, "--sepia")
    os.link(source, tmp_path / "same.png")
    assert "is not overwritten" in fails(capsys, source, tmp_path / "same.png", "--sepia")
    assert "is not overwritten" in fails(capsys, tmp_path, tmp_path, "--sepia")
    mix = f"second={tmp_path / 'same.png'}"
    assert "is not overwritten" in fails(capsys, source, tmp_path / "same.png", "--video_mix", mix)
    assert "name of a video" in fails(capsys, source, tmp_path / "out.mp4", "--sepia")
    assert "looks like a file" in fails(capsys, f"{tmp_path}/*.png", out, "--sepia")
    assert "Pillow cannot write '.xyz' files" in fails(
        capsys, source, tmp_path / "out.xyz", "--sepia"
    )
    assert source.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.png", "same.png"]


def test_damaged_pictures(source, tmp_path, capsys):
    cut = tmp_path / "cut.png"
    cut.write_bytes(source.read_bytes()[:400])
    assert "cut.png cannot be read as a picture" in fails(
        capsys, cut, tmp_path / "o.png", "--sepia"
    )
    (tmp_path / "text.png").write_text("hello")
    assert "cannot be read" in fails(capsys, tmp_path / "text.png", tmp_path / "o.png", "--sepia")
    assert not (tmp_path / "o.png").exists()


def test_max_pixels_overrides_the_limit_of_pillow(source, tmp_path, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)  # Pillow's own would refuse it
    works(source, tmp_path / "out.png", "--invert", "--max-pixels", "1200")
    assert Image.MAX_IMAGE_PIXELS == 100
    monkeypatch.undo()
    assert (pixels(tmp_path / "out.png") == 255 - picture()).all()


def test_debug_shows_the_traceback(tmp_path):
    with pytest.raises(FileNotFoundError):
        main(["filter", str(tmp_path / "no.png"), str(tmp_path / "o.png"), "--sepia", "--debug"])


# files as they come -----------------------------------------------------------------------------
def test_transparency_over_a_background(tmp_path, capsys):
    clear = np.zeros((8, 8, 4), np.uint8)
    Image.fromarray(clear).save(tmp_path / "clear.png")
    works(tmp_path / "clear.png", tmp_path / "out.jpg", "--blur", "1", "--background", "lime")
    assert np.abs(pixels(tmp_path / "out.jpg")[4, 4].astype(int) - (0, 255, 0)).max() < 4
    assert capsys.readouterr().err == ""
    works(tmp_path / "clear.png", tmp_path / "out.jpg", "--blur", "1")
    assert "JPEG has no transparency; the picture is laid over white" in capsys.readouterr().err


def test_sixteen_bit_color(tmp_path):
    deep = np.arange(2 * 3 * 3, dtype=np.uint16).reshape(2, 3, 3) * 3001
    (tmp_path / "deep.png").write_bytes(encode_png(deep))
    works(tmp_path / "deep.png", tmp_path / "out.png", "--invert")
    found = Frame.open(tmp_path / "out.png", depth="stored", device="cpu").numpy()
    assert (np.rint(found * 65535) == 65535 - deep).all()


def test_profiles(tmp_path, capsys):
    from PIL import ImageCms

    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    Image.fromarray(picture()).save(tmp_path / "in.png", icc_profile=profile)
    works(tmp_path / "in.png", tmp_path / "raw.jpg", "--invert", "--color", "raw")
    with Image.open(tmp_path / "raw.jpg") as image:
        assert image.info["icc_profile"] == profile
    works(tmp_path / "in.png", tmp_path / "plain.png", "--invert")
    with Image.open(tmp_path / "plain.png") as image:
        assert "icc_profile" not in image.info


def test_a_format_or_a_setting_needs_no_filter(source, tmp_path, capsys):
    assert main(["filter", str(source), str(tmp_path / "same.bmp")]) == 0
    np.testing.assert_array_equal(pixels(tmp_path / "same.bmp"), pixels(source))
    assert main(["filter", str(tmp_path), str(tmp_path / "out"), "--format", "tif"]) == 0
    np.testing.assert_array_equal(pixels(tmp_path / "out" / "in.tif"), pixels(source))


def test_the_sound_alone_changes(tmp_path, capsys):
    """Without filters the planes of a video go to the encoder as they are."""
    audio = pytest.importorskip("dala.media.audio")
    from dala.media import Scene, video

    audio.tone(440, 2, amplitude=0.05).save(tmp_path / "tone.wav")
    with Scene(64, 48, fps=10) as scene:
        scene.add_overlay(color="#c02040", size=(32, 48))
        scene.add_audio(str(tmp_path / "tone.wav"))
        scene.render_to(tmp_path / "quiet.mp4", 2)
    given, made = str(tmp_path / "quiet.mp4"), str(tmp_path / "loud.mp4")
    assert "or what else" in fails(capsys, given, made)
    assert main(["filter", given, made, "--loudness", "-16"]) == 0
    with audio.open(made) as reader:
        assert reader.read().loudness().integrated == pytest.approx(-16, abs=0.7)
    with video.open(given) as before, video.open(made) as after:
        for old, new in zip(before, after, strict=True):
            assert np.abs(old.numpy().astype(int) - new.numpy()).mean() < 2


KERNEL = '''"""A file as one writes it."""
from dala.gpu.compute import Pixel, kernel, rgba


@kernel
def tint(px: Pixel, *, amount: float = 0.5, color: vec3 = (1.0, 0.0, 0.0)):
    """Mix a color in."""
    return rgba(mix(px.rgb, color, amount), px.a)
'''
PROGRAM = """from dala.gpu.compute import Pixel, program


@program
def trail(px: Pixel, *, keep=0.5):
    def light(px: Pixel, light: Pixel):
        return max(px.rgb, light.rgb * keep)

    def picture(light: Pixel):
        return light.rgb
"""


def test_kernels_of_files(source, tmp_path, capsys):
    file, out = tmp_path / "tint.py", tmp_path / "out.png"
    file.write_text(KERNEL)
    words = ["filter", str(source), str(out), "--kernel", f"{file},amount=1,color=0:1:0.2"]
    assert main([*words, "--invert", *CPU]) == 0
    assert (pixels(out) == (255, 0, 204)).all()
    capsys.readouterr()
    assert main([*words, "--json", *CPU]) == 0
    made = json.loads(capsys.readouterr().out)["filters"][0]
    assert made == {"kernel": KERNEL, "params": {"amount": 1, "color": [0, 1, 0.2]}}
    (tmp_path / "trail.py").write_text(PROGRAM)
    words = ["filter", str(source), str(out), "--kernel", str(tmp_path / "trail.py")]
    assert main([*words, *CPU]) == 0
    assert (pixels(out) == picture()).all()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("none.py", "there is no file"),
        ("tint.py,amuont=1", "Did you mean 'amount'?"),
        ("tint.py,0.5", "must be NAME=VALUE"),
        ("bad.py", "not valid Python"),
    ],
)
def test_kernels_with_mistakes(source, tmp_path, capsys, monkeypatch, value, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tint.py").write_text(KERNEL)
    (tmp_path / "bad.py").write_text("def f(px: Pixel) return px")
    with pytest.raises(SystemExit) as stop:
        main(["filter", str(source), "out.png", "--kernel", value, *CPU])
    assert stop.value.code == 2
    assert text in capsys.readouterr().err


SHADER = """/*{"INPUTS": [{"NAME": "inputImage", "TYPE": "image"},
    {"NAME": "mask", "TYPE": "image"}, {"NAME": "amount", "TYPE": "float", "MIN": 0, "MAX": 1}]}*/
void main() {
    vec4 color = IMG_THIS_PIXEL(inputImage);
    gl_FragColor = mix(color, IMG_THIS_PIXEL(mask), amount);
}"""


def test_shaders_of_files(source, tmp_path, capsys):
    file, out = tmp_path / "mix.fs", tmp_path / "out.png"
    file.write_text(SHADER)
    words = ["filter", str(source), str(out), "--shader"]
    assert main([*words, f"{file},mask={source},amount=1", "--invert", *CPU]) == 0
    assert (pixels(out)[..., :3] == 255 - picture()).all()
    capsys.readouterr()
    for given, text in (
        (f"{file},mask={source},amuont=1", "Did you mean 'amount'?"),
        (f"{file},amount=1", "mask"), ("none.fs", "there is no file"), ("", "missing a file"),
    ):  # fmt: skip
        with pytest.raises(SystemExit) as stop:
            main([*words, given, *CPU])
        assert stop.value.code == 2
        assert text in capsys.readouterr().err


def test_render(tmp_path, capsys):
    file, out = tmp_path / "plasma.fs", tmp_path / "out.mp4"
    file.write_text("/*{}*/ void main() { gl_FragColor = vec4(isf_FragNormCoord, TIME, 1.0); }")
    words = ["render", str(file), "-o", str(out), "--seconds", "0.2", "--size", "32x16", "--json"]
    assert main([*words, *CPU]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["frames"], report["width"], report["height"]) == (6, 32, 16)
    filter_ = '/*{"INPUTS": [{"NAME": "inputImage", "TYPE": "image"}]}*/ void main() {}'
    (tmp_path / "mix.fs").write_text(filter_)
    assert main(["render", str(tmp_path / "mix.fs"), "-o", str(out), *CPU]) == 2
    assert "takes a picture" in capsys.readouterr().err


BARS = """/*{"INPUTS": [{"NAME": "bars", "TYPE": "audioFFT", "MAX": 8}]}*/
void main() { gl_FragColor = vec4(vec3(IMG_NORM_PIXEL(bars, isf_FragNormCoord).r), 1.0); }"""


def test_shaders_hear_a_file(tmp_path):
    """A tone of 4.5 kHz is in the second of eight bands; the video has the sound and its length."""
    pytest.importorskip("av")
    from dala.media import audio, video

    audio.tone(4500, 0.4, amplitude=1.0).save(tmp_path / "tone.flac")
    (tmp_path / "bars.fs").write_text(BARS)
    out = tmp_path / "out.mkv"
    words = ["render", str(tmp_path / "bars.fs"), "-o", str(out), "--size", "64x16", "--fps", "10"]
    assert main([*words, "--sound", str(tmp_path / "tone.flac"), "--codec", "ffv1", *CPU]) == 0
    with video.open(out) as reader:
        frames = [np.asarray(f)[8, :, 0].astype(int) for f in reader]
        assert reader.has_audio
    assert len(frames) == 4
    assert frames[2][12] > 200
    assert frames[2][40] < 20


@pytest.mark.parametrize("suffix", [".glsl", ".frag"])
def test_texts_of_shadertoy_are_shaders(source, tmp_path, suffix):
    file = tmp_path / f"toy{suffix}"
    file.write_text("void mainImage(out vec4 c, vec2 p) { c = vec4(0.2, 0.4, 0.6, 1.0); }")
    works(source, tmp_path / "out.png", "--shader", file)
    assert pixels(tmp_path / "out.png")[3, 3].tolist() == [51, 102, 153]
