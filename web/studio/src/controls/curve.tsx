// A tone curve through points: drag them, click to add, Delete removes, arrow keys move.
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { drag } from "../ui/parts";
import { useEdited } from "./edited";

type Point = [number, number];
const WIDTH = 300;
const HEIGHT = 200;
const APART = 0.004;

/** Monotone cubic as the filter evaluates it: slopes are harmonic means of the chords' slopes. */
export function curveAt(points: Point[]): (x: number) => number {
  const count = points.length;
  const run = points.slice(1).map((point, i) => point[0] - points[i][0]);
  const chord = points.slice(1).map((point, i) => (point[1] - points[i][1]) / (run[i] || 1e-9));
  const slope = points.map((_, i) => {
    if (i === 0) return chord[0];
    if (i === count - 1) return chord[count - 2];
    if (chord[i - 1] * chord[i] <= 0) return 0;
    const [w1, w2] = [2 * run[i] + run[i - 1], run[i] + 2 * run[i - 1]];
    return (w1 + w2) / (w1 / chord[i - 1] + w2 / chord[i]);
  });
  return (x) => {
    const t = Math.min(Math.max(x, points[0][0]), points[count - 1][0]);
    let i = 0;
    while (i < count - 2 && t >= points[i + 1][0]) i++;
    const [h, u] = [run[i], (t - points[i][0]) / (run[i] || 1e-9)];
    return (
      (1 + 2 * u) * (1 - u) ** 2 * points[i][1] + u * (1 - u) ** 2 * h * slope[i] +
      u ** 2 * (3 - 2 * u) * points[i + 1][1] + u ** 2 * (u - 1) * h * slope[i + 1]
    );
  };
}

export function CurveControl(props: {
  label: string;
  value: Point[] | null;
  set: (value: Point[] | null) => void;
  tint: string;
}): JSX.Element {
  const [shown, edit] = useEdited<Point[] | null>(props.value, props.set);
  const points: Point[] = shown && shown.length >= 2 ? shown : [[0, 0], [1, 1]];
  const svg = useRef<SVGSVGElement>(null);
  const chosen = useSignal<number | null>(null);
  const at = curveAt(points);
  const path = Array.from({ length: 81 }, (_, i) => {
    const x = i / 80;
    return `${i ? "L" : "M"}${(x * WIDTH).toFixed(1)} ${((1 - clip(at(x))) * HEIGHT).toFixed(1)}`;
  }).join("");

  function place(event: PointerEvent): Point {
    const box = svg.current!.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width;
    const y = 1 - (event.clientY - box.top) / box.height;
    return [clip(x), clip(y)];
  }
  function moved(list: Point[], index: number, [x, y]: Point): Point[] {
    const low = index > 0 ? list[index - 1][0] + APART : 0;
    const high = index < list.length - 1 ? list[index + 1][0] - APART : 1;
    const next = list.slice();
    next[index] = [round(Math.min(Math.max(x, low), high)), round(clip(y))];
    return next;
  }
  function onPointerDown(event: PointerEvent): void {
    event.preventDefault();
    const where = place(event);
    let list = points;
    const box = svg.current!.getBoundingClientRect();
    let index = list.findIndex(
      (point) => Math.hypot((point[0] - where[0]) * box.width, (point[1] - where[1]) * box.height) < 14,
    );
    if (index < 0) {
      index = list.findIndex((point) => point[0] > where[0]);
      if (index < 0) index = list.length;
      list = [...list.slice(0, index), where, ...list.slice(index)];
      list = moved(list, index, where);
      edit(list);
    }
    chosen.value = index;
    queueMicrotask(() => focus(index));
    drag(event, (next) => {
      list = moved(list, index, place(next));
      edit(list);
    });
  }
  function focus(index: number): void {
    svg.current?.querySelectorAll<SVGElement>("circle")[index]?.focus();
  }
  function remove(index: number): void {
    if (points.length <= 2) return;
    edit(points.filter((_, each) => each !== index));
    chosen.value = null;
  }
  function onKeyDown(event: KeyboardEvent, index: number): void {
    const step = event.shiftKey ? 0.1 : 0.01;
    const [x, y] = points[index];
    if (event.key === "ArrowLeft") edit(moved(points, index, [x - step, y]));
    else if (event.key === "ArrowRight") edit(moved(points, index, [x + step, y]));
    else if (event.key === "ArrowUp") edit(moved(points, index, [x, y + step]));
    else if (event.key === "ArrowDown") edit(moved(points, index, [x, y - step]));
    else if (event.key === "Delete" || event.key === "Backspace") remove(index);
    else if (event.key === "Enter" && index < points.length - 1) {
      const middle = (x + points[index + 1][0]) / 2;
      const list = [...points.slice(0, index + 1), [round(middle), round(at(middle))] as Point, ...points.slice(index + 1)];
      edit(list);
      queueMicrotask(() => focus(index + 1));
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
  return (
    <div class={`curve ${props.tint}`} role="group" aria-label={`${props.label} curve`}>
      <svg
        ref={svg}
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        data-testid={`curve-${props.label}`}
        onPointerDown={onPointerDown}
        onDblClick={() => chosen.value !== null && remove(chosen.value)}
      >
        <path class="curve-grid" d="M75 0V200M150 0V200M225 0V200M0 50H300M0 100H300M0 150H300M0 200L300 0" />
        <path class="curve-line" d={path} />
        {points.map((point, index) => (
          <circle
            key={index}
            cx={point[0] * WIDTH}
            cy={(1 - point[1]) * HEIGHT}
            r={6}
            tabindex={0}
            role="slider"
            aria-label={`${props.label}, point ${index + 1}`}
            aria-valuemin={0}
            aria-valuemax={1}
            aria-valuenow={point[1]}
            aria-valuetext={`${point[0]} to ${point[1]}`}
            onKeyDown={(event) => onKeyDown(event, index)}
          />
        ))}
      </svg>
    </div>
  );
}

function clip(value: number): number {
  return Math.min(Math.max(value, 0), 1);
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
