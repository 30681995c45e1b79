// The clock of a page: the time that kernels are given, which runs, pauses, and runs at other speeds.

export class Clock {
  /** Seconds since the beginning. */
  time = 0;
  /** The number of the frame. */
  frame = 0;
  speed = 1;
  /** Whether it runs; not at first where readers ask for less motion. */
  playing = !globalThis.matchMedia?.("(prefers-reduced-motion: reduce)").matches;
  private last: number | undefined;

  /** Go on to the frame of a moment, in milliseconds; a paused clock stays. */
  tick(now: number): void {
    if (this.playing && this.last !== undefined) {
      // A page that was in the background goes on where it was.
      this.time += Math.min((now - this.last) / 1000, 0.25) * this.speed;
      this.frame++;
    }
    this.last = now;
  }

  /** Begin again at 0. */
  restart(): void {
    this.time = this.frame = 0;
    this.last = undefined;
  }
}
