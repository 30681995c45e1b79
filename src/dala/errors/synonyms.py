"""Names that people know from elsewhere, and names that are almost right.

Words of OpenCV, Pillow, ffmpeg, MoviePy, scikit-image, CSS, GLSL, NumPy and After Effects, each
with the names here that do the same. One table serves filters, parameters, transitions, easings,
codecs, positions and functions of the kernel language: a name counts only where it is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

#: A name here, and the words that mean it, in small letters without "_", "-" and spaces; "-" is
#: for words that mean nothing here, though some name is spelled almost like them.
_TABLE: Final = """
blur: smooth soften gblur avgblur filterblur
gaussian_blur: gblur gaussian gaussianfilter
box_blur: boxfilter averageblur avgblur meanfilter uniformfilter
motion_blur: directionalblur camerablur
median: medianblur medianfilter
bilateral: bilateralfilter surfaceblur
denoise: fastnlmeansdenoising nlmeans hqdn3d despeckle noisereduction removenoise
grayscale: cvtcolor desaturate blackandwhite bw monochrome togray gray grey rgb2gray rgbtogray
invert: negate negative bitwisenot inverted
edge_detect: sobel scharr laplacian findedges edges contour edgedetection
canny: edgedetection edges
dilate: dilation maxfilter
erode: erosion minfilter
morphology: morphologyex opening closing open close tophat blackhat
flip: hflip vflip mirror fliplr flipud mirrorx mirrory
rotate: transpose rot90 rotate90 rotation
resize: scale zoom imresize rescale downscale upscale zoompan
crop: centercrop cropimage trimborders
pad: border copymakeborder letterbox padding expand margin
thumbnail: makethumbnail
chroma_key: colorkey greenscreen bluescreen keylight key maskcolor
sharpen: sharpness sharp cas
unsharp_mask: unsharp
grain: noise addnoise filmgrain
pixelate: mosaic pixelize pixelation
posterize: quantize reducecolors
brightness: exposure lighten darken luminosity eq multiplycolor
contrast: eq lumcontrast
saturation: vibrance colorfulness saturate eq color
hue: huerotate hueshift
gamma: gammacorr gammacorrection adjustgamma
levels: colorlevels inputlevels
curves: curve tonecurve
grade: colorgrade lift liftgammagain colorwheels
temperature: colortemperature warmth warm cool
white_balance: colorbalance grayworld awb
color_matrix: colorchannelmixer channelmixer matrix
sepia: sepiatone
vignette: darkcorners
lut_apply: lut lut3d haldclut colorcube applylut
equalize: equalizehist histeq histogramequalization
clahe: createclahe adaptiveequalize equalizeadapthist
auto_contrast: autocontrast normalize autolevels stretchcontrast rescaleintensity
threshold: binarize thresh otsu adaptivethreshold thresholding
warp_perspective: perspective homography cornerpin corners quad
warp_affine: affine shear skew
remap: displace displacement displacementmap distort lenscorrection
emboss: relief bevel
chromatic_aberration: rgbashift rgbshift chromashift aberration rgbsplit
overlay: watermark paste composite logo
overlay_alpha: alphablend alphacomposite alphamerge
blend: addweighted mix composite screen multiply blendmode
video_mix: crossblend addweighted
virtual_background: replacebackground removebackground rembg backgroundblur
beauty: skinsmooth smoothskin retouch
radius: ksize kernelsize window kernel blursize
sigma: sigmax sigmay std stddev deviation
amount: strength intensity factor level opacity
value: beta delta factor gain strength
degrees: angle rotation deg theta
color: colour fillcolor foreground
method: interpolation resample flags filter
border: bordertype bordermode edgemode
fill: bordervalue cval fillvalue background
dissolve: crossfade xfade crossdissolve mix crossfadein
fade: fadeblack fadetoblack dipto diptocolor fadein fadeout
wipe: wipeleft wiperight barwipe
slide: slidein slideleft slideright moveinleft
push: pushleft pushright smoothleft
iris: circleopen circleclose circlecrop iriswipe
zoom: zoomin crosszoom
cut: hardcut none
ease-in-out: easeinout easyease smooth swing
ease-in: easein easyeasein accelerate
ease-out: easeout easyeaseout decelerate
h264: x264 libx264 avc mpeg4avc
hevc: x265 libx265 h265
av1: libsvtav1 libaom svtav1
vp9: libvpx libvpxvp9
prores: proresks
top-left: northwest topleft lefttop upperleft
top-right: northeast topright righttop upperright
bottom-left: southwest lowerleft
bottom-right: southeast lowerright
top: north
bottom: south
left: west
right: east
center: centre middle centered
contain: fit inside letterbox
cover: fill crop slice outside
stretch: scale squash force
mix: lerp interpolate
select: where ifelse ternary
length: distance norm magnitude
max: maximum fmax
min: minimum fmin
pow: power
atan: arctan
atan2: arctan2
round: rint roundeven
fract: frac modf
clamp: clip saturate
dot: inner
vec2: float2
vec3: float3
vec4: float4
rgba: color
shape: resolution iresolution
position: fragcoord glfragcoord
-: asin acos sinh cosh asinh acosh atanh exp2 log2 log10 log1p expm1 cbrt inverse cross
"""


def normalized(name: str) -> str:
    """Return a name in small letters, without what separates its words.

    >>> normalized("GaussianBlur"), normalized("ease-in_out")
    ('gaussianblur', 'easeinout')
    """
    return "".join(c for c in name.lower() if c.isalnum())


def _rows() -> Iterator[tuple[str, list[str]]]:
    for line in _TABLE.split("\n")[1:-1]:
        name, _, words = line.partition(": ")
        yield name, words.split()


def words_for(name: str) -> tuple[str, ...]:
    """Return the words by which people look for a name, for searches.

    >>> words_for("dissolve")[:2]
    ('crossfade', 'xfade')
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
    ours = {one for one, words in _rows() if wanted in words}
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
        longest = max(len(wanted), len(other))
        most = max(longest // 4, int(longest > 2))
        begins = min(len(wanted), len(other)) >= 3 and (
            other.startswith(wanted) or (len(other) > 3 and wanted.startswith(other))
        )
        parts = {other, other[: len(wanted) + 1] if len(wanted) > 4 else other}
        far = 1 if begins else min(_distance(wanted, part, most) for part in parts)
        if begins or far <= most:
            near.append((far, one))
    best = min(near, default=(0, ""))[0]
    return [one for far, one in sorted(near) if far == best][:3]


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
