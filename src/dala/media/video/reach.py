"""Formats and protocols that FFmpeg may use when it opens a video.

A video may come from a stranger, and FFmpeg chooses a format by content. Playlists (HLS, DASH,
concat), session descriptions (SDP) and the like name other files and hosts, which FFmpeg would
open; a text file called ``holiday.mp4`` is enough. So a file or stream of bytes is opened with
formats that need nothing but its own bytes, and a URL with those and the protocols of its own kind;
a playlist of a host leads to that host only, unless the caller says so. Scripts
(AviSynth, VapourSynth, lavfi) and devices are never opened by content.
"""

from __future__ import annotations

from typing import Final

_FORMATS: Final = """
    3dostr 4xm aa aac aax ac3 ac4 ace act adp ads adx aea afc aiff aix alp amr amrnb amrwb anm apac
    apc ape apm apng aptx aptx_hd apv argo_asf argo_brp argo_cvg asf asf_o ass ast au av1 avi avr
    avs avs2 avs3 bethsoftvid bfi bfstm bink binka bmp_pipe bmv boa bonk brstm c93 caf cavsvideo
    cdg cdxl cine cri_pipe daud dcstr dds_pipe derf dfa dfpwm dhav dirac dnxhd dpx_pipe dsf dsicin
    dss dts dtshd dv dvbsub dvbtxt dxa ea ea_cdata eac3 epaf evc exr_pipe film_cpk filmstrip fits
    flac flic flv frm fsb fwse g722 g723_1 g726 g726le g728 g729 gdv gem_pipe genh gif gif_pipe gsm
    gxf h261 h263 h264 hca hcom hdr_pipe hevc hnm hxvs iamf ico idcin iff ifv ilbc ingenient ipmovie
    ipu ircam iss iv8 ivf ivr j2k_pipe jacosub jpeg_pipe jpegls_pipe jpegxl_anim jpegxl_pipe
    jpegxs_pipe jv kux kvag laf lc3 live_flv lmlm4 loas lrc luodat lvf lxf m4v matroska webm mca mcc
    mgsts microdvd mjpeg mjpeg_2000 mlp mm mmf mods moflex mov mp4 m4a 3gp 3g2 mj2 mp3 mpc mpc8 mpeg
    mpegts mpegvideo mpjpeg mpl2 mpsub msf msnwctcp msp mtaf mtv musx mv mvi mxf mxg nc nistsphere
    nsp nsv nut nuv obu ogg oma osq paf pam_pipe pbm_pipe pcx_pipe pdv pfm_pipe pgm_pipe pgmyuv_pipe
    pgx_pipe phm_pipe photocd_pipe pictor_pipe pjs pmp png_pipe pp_bnk ppm_pipe psd_pipe psxstr pva
    pvf qcp qdraw_pipe qoa qoi_pipe r3d realtext redspark rka rl2 rm roq rpl rsd rso s337m sami sbc
    sbg scc scd sdns sdr2 sds sdx ser sga sgi_pipe shn siff simbiosis_imx sln smjpeg smk smush sol
    sox spdif srt stl subviewer subviewer1 sunrast_pipe sup svag svs swf tak tedcaptions thp
    tiertexseq tiff_pipe tmv truehd tta txd ty usm v210 v210x vag vbn_pipe vc1 vc1test vidc vividas
    vivo vmd voc vpk vplayer vqf vvc w64 wady wav wavarc wc3movie webp_pipe webvtt wsaud wsd wsvqa
    wtv wv wve xa xbm_pipe xmd xmv xpm_pipe xvag xwd_pipe xwma yop yuv4mpegpipe
"""
#: Formats that read nothing but their file: FFmpeg's names of demuxers.
FORMATS: Final = tuple(_FORMATS.split())

#: Playlists: formats that name other files or hosts.
PLAYLISTS: Final = ("hls", "applehttp", "dash", "concat", "imf", "sdp", "image2", "vobsub", "mlv")

_WEB: Final = ("http", "https", "tcp", "tls", "httpproxy")
_RTSP: Final = ("rtsp", "rtsps", "rtp", "srtp", "udp", "tcp", "tls", "http", "https", "httpproxy")
_RTMP: Final = (
    "rtmp", "rtmpe", "rtmps", "rtmpt", "rtmpte", "rtmpts", "ffrtmphttp", "ffrtmpcrypt", *_WEB,
)  # fmt: skip

#: The protocols that each kind of URL may use. Other kinds are refused.
PROTOCOLS: Final[dict[str, tuple[str, ...]]] = {
    "file": ("file",),
    "http": (*_WEB, "crypto"),
    "https": (*_WEB, "crypto"),
    "rtsp": _RTSP,
    "rtsps": _RTSP,
    **dict.fromkeys(("rtmp", "rtmpe", "rtmps", "rtmpt", "rtmpte", "rtmpts"), _RTMP),
    "rtp": ("rtp", "srtp", "udp"),
    "srtp": ("rtp", "srtp", "udp"),
    "udp": ("udp",),
    "udplite": ("udplite", "udp"),
    "tcp": ("tcp",),
    "tls": ("tls", "tcp"),
    "srt": ("srt",),
    "rist": ("rist",),
    "unix": ("unix",),
    "ftp": ("ftp", "tcp"),
    "sftp": ("sftp",),
    "smb": ("smb",),
    "mms": ("mmsh", "mmst", "http", "tcp"),
    "mmsh": ("mmsh", "http", "tcp"),
    "mmst": ("mmst", "tcp"),
    "whip": _RTSP,
    "whep": _RTSP,
}
#: Kinds of URLs that are sessions by themselves, and their formats.
_SESSIONS: Final = {"rtsp": ("rtsp",), "rtp": ("rtp",)}
#: Playlists that a host may send: their entries are other URLs of the web, never files.
_WEB_PLAYLISTS: Final = ("hls", "applehttp", "dash")

#: Suffixes of pictures that may be numbered.
_PICTURES: Final = (
    ".bmp", ".cr2", ".dng", ".dpx", ".exr", ".gif", ".hdr", ".j2c", ".j2k", ".jfif", ".jls", ".jp2",
    ".jpc", ".jpe", ".jpeg", ".jpg", ".jxl", ".jxs", ".ljpg", ".pam", ".pbm", ".pcd", ".pcx",
    ".pfm", ".pgm", ".phm", ".pic", ".pict", ".pct", ".pix", ".png", ".pnm", ".ppm", ".psd", ".qoi",
    ".ras", ".sgi", ".bw", ".sun", ".svg", ".tga", ".tif", ".tiff", ".vbn", ".wbmp", ".webp",
    ".xbm", ".xface", ".xpm", ".xwd",
)  # fmt: skip
#: No protocol has this name.
_NONE: Final = "none"


def is_named_as_picture(path: str) -> bool:
    """Return whether FFmpeg takes the name of a file for that of numbered pictures.

    >>> is_named_as_picture("shot%03d.png"), is_named_as_picture("100%.mp4")
    (True, False)
    """
    return path.lower().endswith(_PICTURES)


def is_playlist(head: bytes) -> bool:
    """Return whether a file that begins so names other files.

    >>> is_playlist(b"#EXTM3U\\n"), is_playlist(b"\\0\\0\\0\\x20ftypisom")
    (True, False)
    """
    begins = (b"#EXTM3U", b"ffconcat", b"<?xml", b"<MPD", b"v=0\n", b"v=0\r", b"# VobSub", b"MLVI")
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(begins)


def container_options(
    scheme: str | None, *, in_memory: bool = False, playlists: bool = False, device: bool = False
) -> dict[str, str]:
    """Return the options that keep FFmpeg to the file that the caller named.

    Args:
        scheme: the protocol of a URL, in lower case; None for a file.
        in_memory: the bytes come from Python, so FFmpeg opens nothing itself.
        playlists: files and hosts that a playlist names may be opened.
        device: the caller named a format, that of a camera.

    >>> container_options("udp")["protocol_whitelist"]
    'udp'
    >>> container_options(None, in_memory=True)["protocol_whitelist"]
    'none'
    """
    if device:
        return {"protocol_whitelist": "file"}
    formats = list(FORMATS)
    protocols = (_NONE,) if in_memory else PROTOCOLS[scheme or "file"]
    kind = {"https": "http", "rtsps": "rtsp", "srtp": "rtp"}.get(scheme or "", scheme)
    formats += _SESSIONS.get(kind or "", ())
    if playlists:
        remote = kind not in (None, "file")
        formats += _WEB_PLAYLISTS if remote else PLAYLISTS
        protocols = (*protocols, *(() if remote else ("file",)), "crypto", "data", *_WEB)
    made = {
        "format_whitelist": ",".join(formats),
        "protocol_whitelist": ",".join(dict.fromkeys(protocols)),
        # References to other files in MOV.
        "enable_drefs": "0",
        "use_absolute_path": "0",
    }
    if playlists:
        made["safe"] = "0"  # paths in a concat list
        made["allowed_extensions"] = "ALL"
        made["extension_picky"] = "0"
    return made


#: Options for an HLS playlist of a host whose requests all pass through Python. Other playlists,
#: and connections that FFmpeg keeps, would not.
PLAYLIST_OPTIONS: Final = {
    "format_whitelist": ",".join(("hls", "applehttp", *FORMATS)),
    "protocol_whitelist": "http,https",
    "http_persistent": "0",
    "http_multiple": "0",
    "enable_drefs": "0",
    "use_absolute_path": "0",
}
