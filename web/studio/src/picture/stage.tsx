// The stage: the live picture with zoom, the split, handles and values under the pointer.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import {
  card, connection, currentGesture, declarations, dialog, node, panel, player, selectedNode, setParam,
  state, stats, status, tab, timing,
} from "../store";
import type { Card, Param } from "../types";
import { useEdited } from "../controls/edited";
import { corners, dragNode } from "../scene/selection";
import { Icon } from "../ui/icons";
import { drag, useSize } from "../ui/parts";
import { Scopes } from "./charts";
import { Strip } from "./strip";
import { paint } from "./draw";
import {
  panBy, pictureSize, placement, setSplit, split, stageSize, tellView, toPicture, zoom,
  zoomAt, zoomBy, zoomTo,
} from "./geometry";

interface Reading {
  x: number;
  y: number;
  before: number[] | null;
  after: number[] | null;
}

export function Stage(): JSX.Element {
  const root = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const size = useSize(root);
  const reading = useSignal<Reading | null>(null);
  const asked = useRef<{ busy: boolean; next: { x: number; y: number } | null }>({ busy: false, next: null });
  const touches = useRef(new Map<number, { x: number; y: number }>());

  const repaint = useRef(() => {});
  useLayoutEffect(() => {
    let waiting = 0;
    const run = () => {
      waiting = 0;
      if (canvas.current) paint(canvas.current);
      canvas.current?.setAttribute("data-frames", String(player.frames));
    };
    repaint.current = () => {
      if (!waiting) waiting = requestAnimationFrame(run);
    };
    player.onFrame = repaint.current;
    return () => cancelAnimationFrame(waiting);
  }, []);

  useLayoutEffect(() => {
    if (size.width < 1) return;
    const ratio = devicePixelRatio || 1;
    canvas.current!.width = Math.round(size.width * ratio);
    canvas.current!.height = Math.round(size.height * ratio);
    stageSize.value = size;
    tellView();
    repaint.current();
  }, [size.width, size.height]);

  const active = state.value.active;
  useEffect(() => {
    zoom.value = null;
    reading.value = null;
  }, [active]);

  // Drawn again whenever zoom, place or split change.
  const at = placement.value;
  const share = split.value;
  useLayoutEffect(() => repaint.current(), [at, share]);

  async function read(x: number, y: number): Promise<void> {
    const waiting = asked.current;
    waiting.next = { x, y };
    if (waiting.busy) return;
    waiting.busy = true;
    while (waiting.next) {
      const next: { x: number; y: number } = waiting.next;
      waiting.next = null;
      try {
        const reply = await connection.request("pixel", next);
        reading.value = {
          ...next,
          before: (reply.before as number[] | null) ?? null,
          after: (reply.after as number[] | null) ?? null,
        };
      } catch {
        reading.value = null;
      }
    }
    waiting.busy = false;
  }

  function readAt(event: { clientX: number; clientY: number }): void {
    const place = local(event);
    const at = toPicture(place.x, place.y);
    const [w, h] = pictureSize.value;
    const [x, y] = [Math.floor(at.x), Math.floor(at.y)];
    if (x < 0 || y < 0 || x >= w || y >= h || !state.value.active) reading.value = null;
    else void read(x, y);
  }

  function local(event: { clientX: number; clientY: number }): { x: number; y: number } {
    const box = root.current!.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  function onWheel(event: WheelEvent): void {
    event.preventDefault();
    const place = local(event);
    const factor = Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : event.ctrlKey ? 0.01 : 0.0018));
    zoomAt(placement.value.scale * factor, place.x, place.y);
  }
  useEffect(() => {
    const element = canvas.current!;
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, []);

  function onPointerDown(event: PointerEvent): void {
    if (event.button !== 0 && event.button !== 1) return;
    canvas.current!.focus({ preventScroll: true });
    touches.current.set(event.pointerId, local(event));
    if (touches.current.size === 2) return; // a pinch; the first finger's drag sees it too
    const scene = state.value.scene;
    if (scene && panel.value === "scene" && event.button === 0 && !event.altKey) {
      grab(event);
      return;
    }
    let last = local(event);
    drag(
      event,
      (next) => {
        if (touches.current.size > 1) return;
        const place = local(next);
        panBy(place.x - last.x, place.y - last.y);
        last = place;
      },
      () => {},
    );
  }

  /** Select the node under the pointer, and move it while the pointer is down. */
  function grab(event: PointerEvent): void {
    const first = local(event);
    const start = toPicture(first.x, first.y);
    const gesture = currentGesture();
    let moved: { x: number; y: number } | null = null;
    let held: string | null = null;
    function move(): void {
      if (held !== null && moved) dragNode(held, moved.x - start.x, moved.y - start.y, gesture);
    }
    connection
      .request("hit", { x: start.x, y: start.y })
      .then((reply) => {
        held = (reply.node as string | null) ?? null;
        selectedNode.value = held;
        move();
      })
      .catch(() => {});
    drag(event, (next) => {
      const place = local(next);
      if (moved || Math.hypot(place.x - first.x, place.y - first.y) > 3) {
        moved = toPicture(place.x, place.y);
        move();
      }
    });
  }

  function onPointerMove(event: PointerEvent): void {
    const known = touches.current.get(event.pointerId);
    if (known && touches.current.size === 2) {
      const other = [...touches.current].find(([id]) => id !== event.pointerId)![1];
      const place = local(event);
      const before = Math.hypot(known.x - other.x, known.y - other.y);
      const after = Math.hypot(place.x - other.x, place.y - other.y);
      touches.current.set(event.pointerId, place);
      if (before > 1) {
        zoomAt(placement.value.scale * (after / before), (place.x + other.x) / 2, (place.y + other.y) / 2);
        panBy((place.x - known.x) / 2, (place.y - known.y) / 2);
      }
      return;
    }
    if (known) touches.current.set(event.pointerId, local(event));
    if (event.pointerType !== "touch") readAt(event);
  }

  function onPointerEnd(event: PointerEvent): void {
    touches.current.delete(event.pointerId);
    if (event.pointerType === "touch" && event.type === "pointerup") readAt(event);
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const owner = node.value;
    const arrows: { [key: string]: [number, number] } = {
      ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1],
    };
    const direction = arrows[event.key];
    if (direction && owner && panel.value === "scene") {
      const step = event.shiftKey ? 10 : 1;
      dragNode(owner.id, direction[0] * step, direction[1] * step, currentGesture());
    } else if (direction && zoom.value !== null) {
      const step = event.shiftKey ? 240 : Math.max(placement.value.scale, 40);
      panBy(-direction[0] * step, -direction[1] * step);
      const box = root.current!.getBoundingClientRect();
      readAt({ clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 });
    } else if (event.key === "+" || event.key === "=") zoomBy(1.5);
    else if (event.key === "-") zoomBy(1 / 1.5);
    else if (event.key === "0") zoomTo(null);
    else if (event.key === "1") zoomTo(1 / (devicePixelRatio || 1));
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  const current = tab.value;
  const empty = !current;
  return (
    <div class="stage" ref={root} data-testid="stage">
      <canvas
        ref={canvas}
        tabIndex={0}
        role="img"
        aria-label={
          current
            ? `Live picture of ${current.title}, ${current.width} by ${current.height} pixels. Plus and minus zoom, arrow keys move, 0 fits.`
            : "No picture is open"
        }
        data-testid="canvas"
        onPointerDown={onPointerDown}
        onPointerMove={onPointerMove}
        onPointerUp={onPointerEnd}
        onPointerCancel={onPointerEnd}
        onPointerLeave={() => (reading.value = null)}
        onDblClick={(event) => {
          const place = local(event);
          if (zoom.value === null) zoomAt(Math.max(1, placement.value.scale * 2), place.x, place.y);
          else zoomTo(null);
        }}
        onKeyDown={onKeyDown}
      />
      {empty ? <Welcome /> : null}
      {!empty && share !== null ? <SplitHandle share={share} /> : null}
      {!empty && panel.value === "chain" && card.value ? <Handles owner={card.value} /> : null}
      {!empty && panel.value === "scene" && corners.value ? <Outline points={corners.value} /> : null}
      {!empty ? <Scopes /> : null}
      {timing.value ? <Strip /> : null}
      {current?.error ? (
        <p class="stage-error" role="alert">
          <Icon name="alert" /> {current.error}
        </p>
      ) : null}
      {reading.value ? <Values reading={reading.value} /> : null}
      {!empty ? <Figures /> : null}
    </div>
  );
}

function Welcome(): JSX.Element {
  return (
    <div class="welcome">
      <div class="welcome-mark" aria-hidden="true">
        <Icon name="image" size={34} />
      </div>
      <h1>Open something to begin</h1>
      <p>Drop a picture, a video, a scene or a kernel here.</p>
      <button type="button" class="button primary" onClick={() => (dialog.value = "open")}>
        <Icon name="folder" /> Open…
      </button>
    </div>
  );
}

function SplitHandle({ share }: { share: number }): JSX.Element {
  const { scale, left, top } = placement.value;
  const [w, h] = pictureSize.value;
  const stage = stageSize.value;
  const x = Math.min(Math.max(left + w * scale * share, 0), stage.width);
  const from = Math.max(top, 0);
  const until = Math.min(top + h * scale, stage.height);

  function onPointerDown(event: PointerEvent): void {
    event.preventDefault();
    (event.currentTarget as HTMLElement).focus();
    const box = (event.currentTarget as HTMLElement).parentElement!.getBoundingClientRect();
    drag(event, (next) => {
      const at = (next.clientX - box.left - placement.value.left) / (pictureSize.value[0] * placement.value.scale);
      setSplit(Math.min(Math.max(at, 0), 1));
    });
  }
  function onKeyDown(event: KeyboardEvent): void {
    const steps: { [key: string]: number } = {
      ArrowLeft: -0.02, ArrowRight: 0.02, PageDown: -0.2, PageUp: 0.2, Home: -1, End: 1,
    };
    if (!(event.key in steps)) return;
    event.preventDefault();
    event.stopPropagation();
    setSplit(Math.min(Math.max(share + steps[event.key], 0), 1));
  }
  return (
    <div
      class="split"
      role="slider"
      tabIndex={0}
      aria-label="Before and after"
      aria-orientation="horizontal"
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(share * 100)}
      aria-valuetext={`${Math.round(share * 100)}% original`}
      data-testid="split"
      style={{ left: `${x}px`, top: `${from}px`, height: `${Math.max(until - from, 0)}px` }}
      onPointerDown={onPointerDown}
      onKeyDown={onKeyDown}
    >
      <span class="split-label before">Before</span>
      <span class="split-grip" aria-hidden="true" />
      <span class="split-label after">After</span>
    </div>
  );
}

/** Parameters of the selected card that are places: handles on the picture. */
function Handles({ owner }: { owner: Card }): JSX.Element {
  const places = declarations(owner).filter(
    (each) => each.type === "point" && Array.isArray(owner.params[each.name] ?? each.default),
  );
  return (
    <>
      {places.map((param) => (
        <PlaceHandle key={`${owner.id} ${param.name}`} owner={owner} param={param} />
      ))}
    </>
  );
}

/** Places of kernels may be shares of the picture; those of filters are pixels. */
function relative(param: Param): boolean {
  return (param.high ?? Infinity) <= 1;
}

function PlaceHandle({ owner, param }: { owner: Card; param: Param }): JSX.Element {
  const [value, edit] = useEdited((owner.params[param.name] ?? param.default) as [number, number], (next) =>
    setParam(owner, param.name, next),
  );
  const { scale, left, top } = placement.value;
  const [w, h] = pictureSize.value;
  const factor = relative(param) ? [w, h] : [1, 1];

  function set(x: number, y: number): void {
    const digits = relative(param) ? 10000 : 10;
    edit([Math.round(x * digits) / digits, Math.round(y * digits) / digits]);
  }
  function onPointerDown(event: PointerEvent): void {
    event.preventDefault();
    (event.currentTarget as HTMLElement).focus();
    const box = (event.currentTarget as HTMLElement).parentElement!.getBoundingClientRect();
    drag(event, (next) => {
      const at = toPicture(next.clientX - box.left, next.clientY - box.top);
      set(Math.min(Math.max(at.x, 0), w) / factor[0], Math.min(Math.max(at.y, 0), h) / factor[1]);
    });
  }
  function onKeyDown(event: KeyboardEvent): void {
    const arrows: { [key: string]: [number, number] } = {
      ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1],
    };
    const direction = arrows[event.key];
    if (!direction) return;
    event.preventDefault();
    event.stopPropagation();
    const step = event.shiftKey ? 10 : 1;
    set(value[0] + (direction[0] * step) / factor[0], value[1] + (direction[1] * step) / factor[1]);
  }
  return (
    <button
      type="button"
      class="place"
      aria-label={`${param.name}: ${value[0]}, ${value[1]}. Arrow keys move it.`}
      title={param.name}
      data-testid={`place-${param.name}`}
      style={{ left: `${left + value[0] * factor[0] * scale}px`, top: `${top + value[1] * factor[1] * scale}px` }}
      onPointerDown={onPointerDown}
      onKeyDown={onKeyDown}
    >
      <span>{param.name}</span>
    </button>
  );
}

function Outline({ points }: { points: [number, number][] }): JSX.Element {
  const { scale, left, top } = placement.value;
  const placed = points.map(([x, y]) => [left + x * scale, top + y * scale]);
  const path = placed.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("") + "Z";
  return (
    <svg class="outline" data-testid="outline" aria-hidden="true">
      <path class="outline-dark" d={path} />
      <path class="outline-line" d={path} />
      {placed.map(([x, y], index) => (
        <rect key={index} x={x - 3.5} y={y - 3.5} width={7} height={7} />
      ))}
    </svg>
  );
}

function Values({ reading }: { reading: Reading }): JSX.Element {
  return (
    <div class="values" data-testid="values" aria-live="off">
      <span class="values-place">
        {reading.x}, {reading.y}
      </span>
      <Sample label="before" value={reading.before} />
      <span aria-hidden="true">→</span>
      <Sample label="after" value={reading.after} />
    </div>
  );
}

function Sample({ label, value }: { label: string; value: number[] | null }): JSX.Element | null {
  if (!value) return null;
  const shown = value.slice(0, 4).map((each) => (Number.isInteger(each) ? String(each) : each.toFixed(2)));
  const [r, g, b] = value.length < 3 ? [value[0], value[0], value[0]] : value;
  return (
    <span class="sample" data-testid={`values-${label}`}>
      <span class="swatch" style={{ background: `rgb(${r} ${g} ${b})` }} aria-hidden="true" />
      {shown.join(" ")}
    </span>
  );
}

function Figures(): JSX.Element {
  const { rate, total, device, dropped, passes } = stats.value;
  const moving = status.value === "open" && (state.value.playing || tab.value?.live === true);
  return (
    <div class="figures" data-testid="figures">
      {moving && rate !== undefined ? <b>{rate.toFixed(rate < 10 ? 1 : 0)} fps</b> : null}
      {total >= 0.05 ? <span>{total.toFixed(1)} ms</span> : null}
      {passes ? <span>{passes === 1 ? "1 pass" : `${passes} passes`}</span> : null}
      {dropped ? <span title="Pictures that were left out because the page was slower">{dropped} dropped</span> : null}
      {device ? <span class="figures-device">{device}</span> : null}
    </div>
  );
}
