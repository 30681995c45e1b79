// Draw the newest pictures on the canvas of the stage.
import { player } from "../store";
import type { Shown } from "./player";
import { pictureSize, placement, split, zoom, type Placement } from "./geometry";

/** Device pixels for each source pixel from which a grid is drawn, and from which values are. */
const GRID_FROM = 14;
const VALUES_FROM = 58;

let scratch: OffscreenCanvas | null = null;

export function paint(canvas: HTMLCanvasElement): void {
  const context = canvas.getContext("2d", { alpha: true })!;
  const ratio = devicePixelRatio || 1;
  const at = placement.value;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  const { after, before } = player.shown;
  if (!after) return;
  const device: Placement = { scale: at.scale * ratio, left: at.left * ratio, top: at.top * ratio };
  const [w, h] = pictureSize.value;
  context.imageSmoothingEnabled = zoom.value === null || device.scale < 2;
  context.imageSmoothingQuality = "high";
  const share = split.value;
  if (before && share !== null) {
    const edge = device.left + w * device.scale * share;
    stretch(context, before, device, [0, 0, edge, canvas.height]);
    stretch(context, after, device, [edge, 0, canvas.width - edge, canvas.height]);
  } else {
    stretch(context, after, device, null);
  }
  if (device.scale >= GRID_FROM) {
    grid(context, canvas, device, w, h);
    if (device.scale >= VALUES_FROM * Math.min(ratio, 1.5)) values(context, canvas, device, after);
  }
}

/** Where a picture belongs, in pixels of the result as it is now: its size may have changed since. */
function placed(shown: Shown): [number, number, number, number] {
  const [w, h] = pictureSize.value;
  const [x, y, width, height] = shown.header.region;
  const [sx, sy] = [w / shown.header.result[0], h / shown.header.result[1]];
  return [x * sx, y * sy, width * sx, height * sy];
}

function stretch(
  context: CanvasRenderingContext2D,
  shown: Shown,
  at: Placement,
  clip: [number, number, number, number] | null,
): void {
  const [x, y, w, h] = placed(shown);
  context.save();
  if (clip) {
    context.beginPath();
    context.rect(...clip);
    context.clip();
  }
  context.drawImage(shown.image, at.left + x * at.scale, at.top + y * at.scale, w * at.scale, h * at.scale);
  context.restore();
}

function visible(canvas: HTMLCanvasElement, at: Placement, w: number, h: number) {
  return {
    x0: Math.max(0, Math.floor(-at.left / at.scale)),
    y0: Math.max(0, Math.floor(-at.top / at.scale)),
    x1: Math.min(w, Math.ceil((canvas.width - at.left) / at.scale)),
    y1: Math.min(h, Math.ceil((canvas.height - at.top) / at.scale)),
  };
}

function grid(
  context: CanvasRenderingContext2D, canvas: HTMLCanvasElement, at: Placement, w: number, h: number,
): void {
  const { x0, y0, x1, y1 } = visible(canvas, at, w, h);
  context.beginPath();
  for (let x = x0; x <= x1; x++) {
    const px = Math.round(at.left + x * at.scale) + 0.5;
    context.moveTo(px, at.top + y0 * at.scale);
    context.lineTo(px, at.top + y1 * at.scale);
  }
  for (let y = y0; y <= y1; y++) {
    const py = Math.round(at.top + y * at.scale) + 0.5;
    context.moveTo(at.left + x0 * at.scale, py);
    context.lineTo(at.left + x1 * at.scale, py);
  }
  context.strokeStyle = "rgb(128 128 128 / 0.35)";
  context.lineWidth = 1;
  context.stroke();
}

/** Write each pixel's value into it, from the picture that is shown. */
function values(
  context: CanvasRenderingContext2D, canvas: HTMLCanvasElement, at: Placement, shown: Shown,
): void {
  const [rx, ry, rw, rh] = placed(shown);
  const { width, height } = shown.header;
  if (Math.abs(width - rw) > 1 || Math.abs(height - rh) > 1) return; // not one to one
  const [w, h] = pictureSize.value;
  const { x0, y0, x1, y1 } = visible(canvas, at, w, h);
  if (x1 <= x0 || y1 <= y0) return;
  scratch ??= new OffscreenCanvas(1, 1);
  scratch.width = x1 - x0;
  scratch.height = y1 - y0;
  const reader = scratch.getContext("2d", { willReadFrequently: true })!;
  reader.drawImage(shown.image, rx - x0, ry - y0, rw, rh);
  const data = reader.getImageData(0, 0, x1 - x0, y1 - y0).data;
  const size = Math.min(at.scale / 5.2, 26);
  context.font = `${size}px "JetBrains Mono Variable", monospace`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (let y = y0; y < y1; y++) {
    for (let x = x0; x < x1; x++) {
      const i = 4 * ((y - y0) * (x1 - x0) + x - x0);
      const [r, g, b] = [data[i], data[i + 1], data[i + 2]];
      context.fillStyle = 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "rgb(0 0 0 / .8)" : "rgb(255 255 255 / .85)";
      const cx = at.left + (x + 0.5) * at.scale;
      const cy = at.top + (y + 0.5) * at.scale;
      context.fillText(String(r), cx, cy - size * 1.15);
      context.fillText(String(g), cx, cy);
      context.fillText(String(b), cx, cy + size * 1.15);
    }
  }
}
