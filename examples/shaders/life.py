"""Conway's game of life; cells that die leave a trail."""

from dala.gpu.compute import FrameNumber, Image, max, position, program, random, rgba, target


@program
def life(*, density: float = 0.3):
    @target(size=0.25)
    def cells(cells: Image, *, n: FrameNumber):
        y, x = position()
        alive = cells[0, 0].r
        around = 0.0 - alive
        for j in range(3):
            for i in range(3):
                around += cells[i - 1, j - 1].r
        born = (around > 2.5 and around < 3.5) or (alive > 0.5 and around > 1.5 and around < 2.5)
        trail = max(cells[0, 0].g - 0.02, 1.0 if born else 0.0)
        return rgba(1.0 if (random(x, y) < density if n < 1 else born) else 0.0, trail, 0.0, 1.0)

    def picture(cells: Image):
        y, x = position()
        c = cells.sample(x // 4, y // 4)
        return rgba(c.r * 0.9 + c.g * 0.1, c.r * 0.8 + c.g * 0.25, c.r * 0.6 + c.g * 0.6, 1.0)
