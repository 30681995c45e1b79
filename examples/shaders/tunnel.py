"""Feedback: each frame shows the last one, larger and turned, under the picture's edges."""

from dala.gpu.compute import Image, abs, cos, dot, mat2, max, position, program, rgba, sin, vec3


@program
def tunnel(img: Image, *, zoom: float = 0.97, turn: float = 0.01, keep: float = 0.95):
    def echo(echo: Image):
        y, x = position()
        c, s = cos(turn), sin(turn)
        p = mat2(c, s, 0 - s, c) @ (x - img.width / 2, y - img.height / 2) * zoom
        old = echo.sample(p.x + img.width / 2, p.y + img.height / 2).rgb * keep
        across, down = img[1, 0].rgb - img[-1, 0].rgb, img[0, 1].rgb - img[0, -1].rgb
        edge = abs(across) + abs(down)
        return rgba(
            max(vec3(old.g, old.b, old.r) * 0.1 + old * 0.9, edge * dot(edge, (1.0, 1.0, 1.0))), 1.0
        )
