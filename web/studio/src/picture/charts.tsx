// Histogram and waveform of the result, drawn over a corner of the stage.
import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { charts } from "../store";
import type { Charts } from "../types";
import { wantedCharts } from "./geometry";

const COLORS = { r: "255 92 92", g: "86 214 120", b: "92 148 255", luma: "200 206 214" };

export function Scopes(): JSX.Element | null {
  const wanted = wantedCharts.value;
  if (wanted.length === 0) return null;
  return (
    <div class="scopes">
      {wanted.includes("histogram") ? <Histogram value={charts.value.histogram} /> : null}
      {wanted.includes("waveform") ? <Waveform value={charts.value.waveform} /> : null}
    </div>
  );
}

function Histogram({ value }: { value: Charts["histogram"] }): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    const context = canvas.current!.getContext("2d")!;
    const { width, height } = canvas.current!;
    context.clearRect(0, 0, width, height);
    if (!value) return;
    // A few levels with very many pixels, such as pure black, must not flatten the rest.
    const counts = [...value.r, ...value.g, ...value.b].filter((each) => each > 0).sort((a, b) => a - b);
    const top = Math.max(1, counts[Math.floor(counts.length * 0.985)] ?? 1);
    context.globalCompositeOperation = "lighter";
    for (const name of ["r", "g", "b"] as const) {
      const bins = value[name];
      context.beginPath();
      context.moveTo(0, height);
      bins.forEach((count, index) => {
        context.lineTo(((index + 0.5) / bins.length) * width, height - Math.min(count / top, 1) * (height - 2));
      });
      context.lineTo(width, height);
      context.closePath();
      context.fillStyle = `rgb(${COLORS[name]} / 0.55)`;
      context.fill();
    }
    context.globalCompositeOperation = "source-over";
  }, [value]);
  return (
    <figure class="scope" data-testid="histogram" data-ready={value ? "yes" : "no"}>
      <figcaption>Histogram</figcaption>
      <canvas ref={canvas} width={256} height={96} role="img" aria-label={describe(value)} />
    </figure>
  );
}

function describe(value: Charts["histogram"]): string {
  if (!value) return "Histogram";
  const mean = (bins: number[]) => {
    const sum = bins.reduce((a, b) => a + b, 0) || 1;
    return Math.round(bins.reduce((a, count, level) => a + count * level, 0) / sum);
  };
  return `Histogram; mean red ${mean(value.r)}, green ${mean(value.g)}, blue ${mean(value.b)} of 255`;
}

function Waveform({ value }: { value: Charts["waveform"] }): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    const element = canvas.current!;
    const context = element.getContext("2d")!;
    if (!value) {
      context.clearRect(0, 0, element.width, element.height);
      return;
    }
    const { width, height, values } = value;
    element.width = width;
    element.height = height;
    const bytes = Uint8Array.from(atob(values), (letter) => letter.charCodeAt(0));
    const image = context.createImageData(width, height);
    for (let i = 0; i < width * height; i++) {
      const level = Math.min(255, bytes[i] * 1.5);
      image.data[4 * i] = 150 + level * 0.4;
      image.data[4 * i + 1] = 205 + level * 0.2;
      image.data[4 * i + 2] = 190 + level * 0.25;
      image.data[4 * i + 3] = level;
    }
    context.putImageData(image, 0, 0);
  }, [value]);
  return (
    <figure class="scope" data-testid="waveform" data-ready={value ? "yes" : "no"}>
      <figcaption>Waveform</figcaption>
      <canvas ref={canvas} width={256} height={96} role="img" aria-label="Waveform: levels of each column" />
    </figure>
  );
}
