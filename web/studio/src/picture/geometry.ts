// Where the picture lies on the stage. Stage coordinates are CSS pixels, picture ones source pixels.
import { computed, effect, signal } from "@preact/signals";
import { now, player, sendView, state, tab, view } from "../store";

export const stageSize = signal({ width: 0, height: 0 });
/** CSS pixels for each source pixel; null fits the picture into the stage. */
export const zoom = signal<number | null>(null);
/** The source pixel in the center of the stage while zoomed. */
export const center = signal({ x: 0, y: 0 });
/** The share of the picture that shows the original, or null. */
export const split = signal<number | null>(null);
export const wantedCharts = signal<string[]>([]);

const MARGIN = 20;
export const LEAST_ZOOM = 0.02;
export const MOST_ZOOM = 96;

export const pictureSize = computed<[number, number]>(() => {
  const result = state.value.result;
  if (result && result.width > 0) return [result.width, result.height];
  const current = tab.value;
  return current ? [Math.max(current.width, 1), Math.max(current.height, 1)] : [1, 1];
});

export interface Placement {
  /** CSS pixels for each source pixel. */
  scale: number;
  left: number;
  top: number;
}

export const fitScale = computed(() => {
  const { width, height } = stageSize.value;
  const [w, h] = pictureSize.value;
  const margin = width < 560 ? 0 : MARGIN;
  return Math.max(Math.min((width - 2 * margin) / w, (height - 2 * margin) / h, MOST_ZOOM), LEAST_ZOOM);
});

export const placement = computed<Placement>(() => {
  const { width, height } = stageSize.value;
  const [w, h] = pictureSize.value;
  const scale = zoom.value ?? fitScale.value;
  if (zoom.value === null) {
    return { scale, left: (width - w * scale) / 2, top: (height - h * scale) / 2 };
  }
  return { scale, left: width / 2 - center.value.x * scale, top: height / 2 - center.value.y * scale };
});

export function toPicture(x: number, y: number): { x: number; y: number } {
  const { scale, left, top } = placement.value;
  return { x: (x - left) / scale, y: (y - top) / scale };
}

function clampCenter(x: number, y: number): { x: number; y: number } {
  const [w, h] = pictureSize.value;
  return { x: Math.min(Math.max(x, 0), w), y: Math.min(Math.max(y, 0), h) };
}

/** Zoom to a scale and keep the source pixel at a place of the stage where it is. */
export function zoomAt(scale: number, x: number, y: number): void {
  const at = toPicture(x, y);
  const next = Math.min(Math.max(scale, LEAST_ZOOM), MOST_ZOOM);
  const { width, height } = stageSize.value;
  center.value = clampCenter(at.x + (width / 2 - x) / next, at.y + (height / 2 - y) / next);
  zoom.value = next;
}

export function zoomBy(factor: number): void {
  const { width, height } = stageSize.value;
  zoomAt(placement.value.scale * factor, width / 2, height / 2);
}

export function zoomTo(scale: number | null): void {
  if (scale === null) {
    zoom.value = null;
  } else {
    const { width, height } = stageSize.value;
    zoomAt(scale, width / 2, height / 2);
  }
}

export function panBy(dx: number, dy: number): void {
  if (zoom.value === null) return;
  const { scale } = placement.value;
  center.value = clampCenter(center.value.x - dx / scale, center.value.y - dy / scale);
}

let timer = 0;

/** Tell the server what is visible, once the view has come to rest for a moment. */
export function later(wait = 40): void {
  clearTimeout(timer);
  timer = setTimeout(tellView, wait) as unknown as number;
}

export function tellView(): void {
  clearTimeout(timer);
  const ratio = devicePixelRatio || 1;
  const region = visibleRegion();
  const [w, h] = region ? [region[2], region[3]] : pictureSize.value;
  const scale = placement.value.scale * ratio;
  view.value = {
    width: Math.max(Math.round(w * scale), stageSize.value.width > 0 ? 16 : 0),
    height: Math.max(Math.round(h * scale), stageSize.value.height > 0 ? 16 : 0),
    region,
    split: split.value !== null,
    charts: wantedCharts.value,
    paused: document.hidden,
    exact: zoom.value !== null && scale >= EXACT_FROM && w * h <= EXACT_MOST,
  };
  sendView();
}

// Another picture, or another size of the result, needs another view.
effect(() => {
  if (placement.value.scale > 0 && state.value.active !== null) later();
});

/** Device pixels for each source pixel from which exact pixels are asked for, and the most of them. */
const EXACT_FROM = 3;
const EXACT_MOST = 500_000;

/** The part of the picture that is on the stage, with some room to pan; null where all of it is. */
function visibleRegion(): [number, number, number, number] | null {
  if (zoom.value === null) return null;
  const { width, height } = stageSize.value;
  const [w, h] = pictureSize.value;
  const { scale, left, top } = placement.value;
  const [roomX, roomY] = [0.15 * width, 0.15 * height];
  const x0 = Math.max(0, Math.floor((-roomX - left) / scale));
  const y0 = Math.max(0, Math.floor((-roomY - top) / scale));
  const x1 = Math.min(w, Math.ceil((width + roomX - left) / scale));
  const y1 = Math.min(h, Math.ceil((height + roomY - top) / scale));
  if (x1 - x0 < 2 || y1 - y0 < 2 || (x0 === 0 && y0 === 0 && x1 === w && y1 === h)) return null;
  return [x0, y0, x1 - x0, y1 - y0];
}

export function setSplit(value: number | null): void {
  const changed = (split.value === null) !== (value === null);
  split.value = value;
  if (value === null) player.drop("before");
  if (changed) tellView();
}

export function toggleChart(name: string): void {
  const on = wantedCharts.value;
  wantedCharts.value = on.includes(name) ? on.filter((each) => each !== name) : [...on, name];
  tellView();
}

/** A time as m:ss.hh, or with the frame's number. */
export function clock(seconds: number): string {
  const safe = Number.isFinite(seconds) ? Math.max(seconds, 0) : 0;
  const minutes = Math.floor(safe / 60);
  const rest = safe - 60 * minutes;
  return `${minutes}:${rest.toFixed(2).padStart(5, "0")}`;
}

export const frameNumber = computed(() => {
  const rate = tab.value?.rate;
  return rate ? Math.round(now.value * rate) : null;
});
