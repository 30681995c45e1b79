"""Names that people know from elsewhere, and names that are almost right.

Words of OpenCV, Pillow, ffmpeg, MoviePy, scikit-image, CSS, GLSL, NumPy and After Effects, each
with the names here that do the same. One table serves filters, parameters, transitions, easings,
codecs, fonts, positions and functions of the kernel language: a name counts only where it is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

#: A name here, and what it is called elsewhere; "-" is for words that mean nothing here, though
#: some name is spelled almost like them. Case, spaces, "_" and "-" do not count.
_TABLE: Final = """
blur: smooth, soften, gblur, avgblur, Gaussian
gaussian_blur: GaussianBlur, gblur, smooth, soften, gaussian filter
box_blur: boxFilter, average blur, avgblur, mean filter, uniform filter
motion_blur: directional blur, camera blur
median: medianBlur, median filter
bilateral: bilateralFilter, surface blur
denoise: fastNlMeansDenoising, nlmeans, hqdn3d, despeckle, noise reduction, remove noise
grayscale: cvtColor, desaturate, black and white, bw, monochrome, gray, grey, rgb2gray, to gray
invert: negate, negative, bitwise_not, inverted
edge_detect: Sobel, Scharr, Laplacian, find edges, edges, contour, outlines, edge detection
canny: edges, outlines, edge detection
dilate: dilation, max filter
erode: erosion, min filter
morphology: morphologyEx, open, close, opening, closing, top hat, black hat
flip: mirror, hflip, vflip, fliplr, flipud
rotate: transpose, rot90, rotate90, turn, straighten, orientation, rotation
resize: scale, zoom, downscale, upscale, rescale, imresize, fit
bicubic_scale: scale, upscale, enlarge
crop: center crop, trim borders
pad: border, copyMakeBorder, letterbox, padding, expand, margin
thumbnail: make thumbnail
chroma_key: green screen, blue screen, keying, colorkey, keylight, remove the background
sharpen: sharpness, sharp, cas
unsharp_mask: unsharp
grain: noise, add noise, film grain
pixelate: mosaic, anonymize, censor, pixelize
posterize: quantize, reduce colors
brightness: exposure, lighten, darken, luminosity, eq
contrast: eq, lum contrast
saturation: vibrance, colorfulness, saturate, eq, color
hue: hue rotate, hue shift
gamma: gamma correction, adjust gamma, gammacorr
levels: color levels, input levels
curves: curve, tone curve
grade: color grading, color grade, lift, lift gamma gain, color wheels
temperature: color temperature, warm, cool, warmth
white_balance: color balance, gray world, awb
color_matrix: colorchannelmixer, channel mixer, matrix
sepia: sepia tone
vignette: dark corners, vignetting
lut_apply: LUT, lut3d, haldclut, cube file, color cube, film look, apply LUT
equalize: equalizeHist, histeq, histogram equalization
clahe: createCLAHE, adaptive equalize, equalize_adapthist
auto_contrast: autocontrast, normalize, auto levels, stretch contrast, rescale intensity
threshold: binarize, thresh, Otsu, adaptive threshold, thresholding
warp_perspective: homography, perspective, keystone, deskew, corner pin, corners
warp_affine: affine, shear, skew
remap: displace, displacement map, distort, lens correction
emboss: relief, bevel
chromatic_aberration: rgbashift, rgb shift, chroma shift, aberration, rgb split
overlay: watermark, logo, sticker, paste, composite
overlay_alpha: watermark, logo, alpha compositing, alpha composite, alpha blend, alphamerge
blend: addWeighted, mix, composite, screen, multiply, blend mode, mix blend mode
video_mix: crossfade, dissolve, addWeighted
virtual_background: blur the background, replace the background, remove background, rembg, bokeh
beauty: skin smoothing, portrait, retouch, smooth skin
key: color, colour, screen color, chroma, background
radius: ksize, kernel size, window, kernel, blur size, border radius, corner radius, rounded
sigma: sigmaX, sigmaY, std, stddev, deviation
amount: strength, intensity, factor, level, opacity
value: beta, delta, factor, gain, strength
degrees: angle, rotation, deg, theta
angle: degrees, rotation, deg, theta
color: colour, fill, fill color, text color, font color, foreground
width: stroke width, line width, thickness, stroke weight, pen width, w, size
height: h, size
size: font size, text size, point size, pt
opacity: alpha, transparency
rotation: angle, rotate, degrees, deg
scale: zoom, scale x, scale y
font: font family, font name, font file, typeface
align: text align, text anchor, justify, halign
line_height: line spacing, leading, interline
letter_spacing: tracking, kerning
outline_width: stroke width, border width
outline_color: stroke, stroke color, border color, stroke fill
x: left
y: top
z_index: layer, depth, order, z, z order
method: interpolation, resample, flags, filter
border: border type, border mode, edge mode
stroke: outline, stroke color, line color
fill: border value, cval, fill value, background, color, fill color, paint
dissolve: crossfade, xfade, cross dissolve, mix, crossfadein
fade: fade to black, fadeblack, dip to color, fade in, fade out
wipe: wipeleft, wiperight, bar wipe
slide: slide in, slideleft, slideright
push: pushleft, pushright, smoothleft
iris: circleopen, circleclose, circlecrop, iris wipe
zoom: zoomin, cross zoom
cut: hard cut, none, trim, split, extract, segment
close: quit, exit, closed, release
not-allowed: forbidden, no
ease-in-out: easeInOut, easy ease, smooth, swing
ease-in: easeIn, easy ease in, accelerate
ease-out: easeOut, easy ease out, decelerate
sans-serif: Arial, Helvetica, Helvetica Neue, Verdana, Tahoma, Calibri, Segoe UI, Roboto, Open Sans
serif: Times, Times New Roman, Georgia, Garamond, Cambria, Palatino, Baskerville
monospace: Courier, Courier New, Consolas, Menlo, Monaco, Fira Code, JetBrains Mono
mpeg4: xvid, divx, mp4v
h264: x264, libx264, avc, MPEG-4 AVC
hevc: x265, libx265, h265
av1: libsvtav1, libaom, svtav1
vp9: libvpx, libvpx-vp9
prores: prores_ks
top-left: northwest, left top, upper left, tl
top-right: northeast, right top, upper right, tr
bottom-left: southwest, lower left, bl
bottom-right: southeast, lower right, br
top: north, top center, center top
bottom: south, bottom center, center bottom
left: west, center left, left center, middle left
right: east, center right, right center, middle right
center: centre, middle, centered
contain: fit, inside, letterbox
cover: fill, crop, slice, outside
stretch: scale, squash, force
mix: lerp, interpolate, crossfade, dissolve, blend
select: where, ifelse, ternary
length: distance, norm, magnitude
max: maximum, fmax
min: minimum, fmin
pow: power
atan: arctan
atan2: arctan2
round: rint, roundEven
fract: frac, modf
clamp: clip, saturate
dot: inner
vec2: float2
vec3: float3
vec4: float4
rgba: color
shape: resolution, iResolution
position: fragCoord, gl_FragCoord, pos, location
filter: convert, transcode, encode, apply, process, resize, compress, gif
concat: join, merge, append, stitch
compose: render
info: probe, ffprobe, mediainfo, identify, metadata
view: play, ffplay, show, display, preview
live: stream, record, broadcast
faces: anonymize, blur faces, hide faces
detect: yolo, objects
background: rembg, remove background
studio: edit, editor, ui, gui
crf: quality, bit rate, b, b v, q v, qscale
codec: vcodec, c v, c
no-audio: an, mute, no sound, silent, remove audio
pointer_down: mouse down, click, press, mouse press, touch start, button press, mouse pressed
pointer_up: mouse up, release, mouse release, touch end, button release, mouse released
pointer_move: mouse move, motion, mouse motion, drag, touch move, motion notify, mouse dragged
double_click: dblclick
wheel: scroll, mouse wheel, scroll event
key_down: key press, on key, key pressed, key
key_up: key release, key released
char: text input, key typed, input
drop: drop file, dropped
pointer: mouse, mouse pos, cursor pos, mouseX, mouseY, hand, pointing hand
open: VideoCapture, VideoFileClip, AudioFileClip, read, load, capture
write: VideoWriter, ImageSequenceClip, save, to file
Frame: imread, Image, open image, read image, load image
Scene: CompositeVideoClip, composition, canvas
frames: n frames, frame count, nb frames, number of frames
seek: at, goto, set time, t
fps: frame rate, rate, get fps
tone: sine, beep, sin
clear: background, erase, fill screen
transformed: rotate, translate, push matrix, save state
text: draw text, fill text, put text, ibeam, caret
to_array: numpy, to numpy, frame, array, pixels, as array
numpy: to numpy, to array, to ndarray, as array, array
to_pil: to image, PIL, pillow, as image
to: convert, reformat, as type
format: mode, pixel format, pix fmt
save: write, imwrite, export, savefig
render_to: write videofile, write video, export, to videofile, save video
add_shape: add circle, add rect, add rectangle, add line, add path, add polygon
add_image: ImageClip, paste, image, picture
add_video: VideoFileClip, video, movie, clip
add_audio: AudioFileClip, audio, sound, music
add_text: TextClip, caption, draw text, text, title
at: delay, adelay, offset, shift, with start
gain: volume, set volume, volumex
cubic_to: bezierCurveTo, bezier to, curve to
quad_to: quadraticCurveTo, quadratic to
-: asin, acos, sinh, cosh, asinh, acosh, atanh, exp2, log2, log10, log1p, expm1, cbrt
"""


@lru_cache(4096)
def normalized(name: str) -> str:
    """Return a name in small letters, without separators of words.

    >>> normalized("GaussianBlur"), normalized("ease-in_out")
    ('gaussianblur', 'easeinout')
    """
    return "".join(c for c in name.lower() if c.isalnum())


def _rows() -> Iterator[tuple[str, list[str]]]:
    for line in _TABLE.split("\n")[1:-1]:
        name, _, words = line.partition(": ")
        yield name, words.split(", ")


def words_for(name: str) -> tuple[str, ...]:
    """Return the names of other libraries for a name, for searches.

    >>> words_for("dissolve")[:3]
    ('crossfade', 'xfade', 'cross dissolve')
    """
    return tuple(word for ours, words in _rows() if ours == name for word in words)


def meant_by(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names that a name probably means, at most three; none for a guess.

    >>> meant_by("crossfade", ["fade", "dissolve", "wipe"])
    ['dissolve']
    >>> meant_by("grayscal", ["grayscale", "blur"]), meant_by("cross", ["cos"])
    (['grayscale'], [])
    """
    wanted, among = normalized(name), sorted(known)
    if not wanted:
        return []
    same = [one for one in among if normalized(one) == wanted]
    if same:
        return same[:3]
    ours = {one for one, words in _rows() if wanted in map(normalized, words)}
    if "-" in ours:
        return []
    found = [one for one in among if one in ours]
    return found[:3] or _misspelled(wanted, among)


def _misspelled(wanted: str, among: list[str]) -> list[str]:
    """Return the nearest names, if they are near: one letter in four may be wrong.

    A name may also be the beginning of another.
    """
    near: list[tuple[int, str]] = []
    for one in among:
        other = normalized(one)
        if min(len(wanted), len(other)) >= 3 and (
            other.startswith(wanted) or (len(other) > 3 and wanted.startswith(other))
        ):
            near.append((1, one))
            continue
        for part in {other, other[: len(wanted) + 1] if len(wanted) > 4 else other}:
            longest = max(len(wanted), len(part))
            most = max(longest // 4, int(longest > 2))
            if (far := _distance(wanted, part, most)) <= most:
                near.append((far, one))
    best = min(near, default=(0, ""))[0]
    return sorted({one for far, one in near if far == best})[:3]


def _distance(a: str, b: str, most: int) -> int:
    """Return how many letters differ, up to ``most``; two exchanged neighbors count as one."""
    if abs(len(a) - len(b)) > most:
        return most + 1
    before, last = [0] * (len(b) + 1), list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            cost = min(last[j] + 1, row[-1] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
        before, last = last, row
    return last[-1]
