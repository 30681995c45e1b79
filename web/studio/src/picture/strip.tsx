// The frames of the last seconds: a bar for each, by what it waited for, and a line at the budget.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { ask, status } from "../store";
import type { FrameTimes } from "../types";

/** Milliseconds between two looks. */
const LOOK = 500;

export function Strip(): JSX.Element {
  const times = useSignal<FrameTimes | null>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    let timer = 0;
    let open = true;
    async function look(): Promise<void> {
      const reply = status.value === "open" ? await ask("strip") : null;
      if (reply) times.value = reply as unknown as FrameTimes;
      if (open) timer = setTimeout(() => void look(), LOOK) as unknown as number;
    }
    void look();
    return () => {
      open = false;
      clearTimeout(timer);
    };
  }, []);
  const found = times.value;
  const all = (found?.frames ?? []).map(([, , stages]) => Object.values(stages).reduce((a, b) => a + b, 0));
  const worst = Math.max(0, ...all);
  useLayoutEffect(() => {
    if (found) draw(canvas.current!, found);
  }, [found]);
  return (
    <figure class="strip" data-testid="strip" data-frames={all.length}>
      <figcaption>
        <span>{found ? `Budget ${found.budget.toFixed(1)} ms, worst ${worst.toFixed(0)} ms` : "Times of frames"}</span>
        {Object.entries(found?.colors ?? {}).map(([stage, color]) => (
          <span key={stage} class="strip-stage">
            <svg width={9} height={9} aria-hidden="true">
              <rect width={9} height={9} fill={color} />
            </svg>
            {stage.replace("wait:", "wait ")}
          </span>
        ))}
      </figcaption>
      <canvas ref={canvas} width={1200} height={96} role="img" aria-label={`${all.length} frames in the last seconds, worst ${worst.toFixed(0)} milliseconds`} />
    </figure>
  );
}

function draw(canvas: HTMLCanvasElement, { budget, seconds, frames, colors }: FrameTimes): void {
  const pen = canvas.getContext("2d")!;
  const { width, height } = canvas;
  const scale = height / Math.max(2 * budget, 1);
  const bar = Math.max(1, width / Math.max(frames.length, 300) - 1);
  pen.clearRect(0, 0, width, height);
  for (const [ago, , stages] of frames) {
    let y = height;
    for (const [stage, ms] of Object.entries(stages)) {
      y -= ms * scale;
      pen.fillStyle = colors[stage];
      pen.fillRect(width * (1 - ago / seconds / 1000) - bar, y, bar, ms * scale);
    }
  }
  pen.fillStyle = "white";
  pen.fillRect(0, height - budget * scale, width, 1);
}
