// The time line: play, pause, step, seek, and a region that repeats.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { ask, change, loop, now, state, tab } from "../store";
import { IconButton, drag } from "../ui/parts";
import { clock, frameNumber } from "./geometry";

export function duration(): number {
  return Math.max(tab.value?.duration ?? state.value.scene?.duration ?? 0, 0);
}

export function seek(time: number): void {
  const end = duration();
  const to = Math.min(Math.max(time, 0), end || time);
  now.value = to;
  change("seek", "seek", { time: to });
}

export function step(frames: number): void {
  change("step", "step", { frames });
}

export function togglePlay(): void {
  void ask(state.value.playing ? "pause" : "play");
}

/** Switch the loop on over everything, or off. */
export function toggleLoop(): void {
  if (loop.value) void ask("loop");
  else void ask("loop", { from: 0, to: duration() });
}

/** Begin or end the loop at the present time. */
export function loopEdge(edge: 0 | 1): void {
  const end = duration();
  const region: [number, number] = loop.value ? [...loop.value] : [0, end];
  region[edge] = now.value;
  if (region[1] - region[0] < 0.001) region[edge === 0 ? 1 : 0] = edge === 0 ? end : 0;
  setLoop(region);
}

function setLoop(region: [number, number]): void {
  const round = (value: number) => Math.round(value * 1000) / 1000;
  change("loop", "loop", { from: round(region[0]), to: round(region[1]) });
}

export function Timeline(): JSX.Element | null {
  const current = tab.value;
  if (!current) return null;
  if (current.live) return <LiveBar />;
  if (!current.seekable || duration() <= 0) return null;
  return <Bar />;
}

function LiveBar(): JSX.Element {
  return (
    <div class="timeline live" data-testid="live">
      <span class="live-dot" aria-hidden="true" /> Live
    </div>
  );
}

function Bar(): JSX.Element {
  const track = useRef<HTMLDivElement>(null);
  const own = useSignal<[number, number] | null>(null);
  const end = duration();
  const region = own.value ?? loop.value;
  const at = Math.min(now.value / end, 1);

  function timeOf(event: PointerEvent): number {
    const box = track.current!.getBoundingClientRect();
    return Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1) * end;
  }
  function onPointerDown(event: PointerEvent): void {
    if (event.button !== 0) return;
    if (event.shiftKey) {
      const from = timeOf(event);
      drag(event, (next) => (own.value = order(from, timeOf(next))), commit);
      return;
    }
    seek(timeOf(event));
    drag(event, (next) => seek(timeOf(next)));
  }
  function commit(): void {
    const region = own.value;
    own.value = null;
    if (region && region[1] - region[0] > 0.01) setLoop(region);
  }
  function onEdge(event: PointerEvent, edge: 0 | 1): void {
    event.stopPropagation();
    const other = loop.value![1 - edge];
    drag(event, (next) => (own.value = order(other, timeOf(next))), commit);
  }
  function onEdgeKey(event: KeyboardEvent, edge: 0 | 1): void {
    const by = (event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0) * (event.shiftKey ? 1 : 0.1);
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    const next: [number, number] = [...loop.value!];
    next[edge] = Math.min(Math.max(next[edge] + by, 0), end);
    if (next[1] - next[0] > 0.01) setLoop(next);
  }
  function onKeyDown(event: KeyboardEvent): void {
    const frame = 1 / (tab.value?.rate || 30);
    const moves: { [key: string]: number } = {
      ArrowLeft: -frame, ArrowRight: frame, ArrowDown: -1, ArrowUp: 1, PageDown: -5, PageUp: 5,
    };
    if (event.key in moves) seek(now.value + moves[event.key]);
    else if (event.key === "Home") seek(0);
    else if (event.key === "End") seek(end);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
  return (
    <div class="timeline" role="group" aria-label="Time">
      <div class="transport">
        <IconButton icon="start" label="To the beginning" keys="Home" onClick={() => seek(loop.value?.[0] ?? 0)} />
        <IconButton icon="back" label="One frame back" keys="," onClick={() => step(-1)} />
        <IconButton
          icon={state.value.playing ? "pause" : "play"}
          label={state.value.playing ? "Pause" : "Play"}
          keys="Space"
          class="play"
          testid="play"
          size={22}
          onClick={togglePlay}
        />
        <IconButton icon="forward" label="One frame forward" keys="." onClick={() => step(1)} />
        <IconButton icon="loop" label="Loop" keys="L" pressed={loop.value !== null} onClick={toggleLoop} />
      </div>
      <span class="clock" data-testid="clock">
        {clock(now.value)}
        {frameNumber.value !== null ? <small>#{frameNumber.value}</small> : null}
      </span>
      <div
        class="track"
        ref={track}
        role="slider"
        tabIndex={0}
        aria-label="Time"
        aria-valuemin={0}
        aria-valuemax={Math.round(end * 100) / 100}
        aria-valuenow={Math.round(now.value * 100) / 100}
        aria-valuetext={`${clock(now.value)} of ${clock(end)}`}
        title="Click to seek, hold Shift and drag to set a loop"
        data-testid="track"
        onPointerDown={onPointerDown}
        onKeyDown={onKeyDown}
      >
        <span class="track-line" />
        {region ? (
          <span
            class="track-loop"
            data-testid="loop"
            style={{ left: `${(region[0] / end) * 100}%`, width: `${((region[1] - region[0]) / end) * 100}%` }}
          />
        ) : null}
        <span class="track-done" style={{ width: `${at * 100}%` }} />
        <span class="track-head" style={{ left: `${at * 100}%` }} />
        {loop.value && region
          ? ([0, 1] as const).map((edge) => (
              <button
                key={edge}
                type="button"
                class="loop-edge"
                aria-label={edge === 0 ? `Loop from ${clock(region[0])}` : `Loop to ${clock(region[1])}`}
                style={{ left: `${(region[edge] / end) * 100}%` }}
                onPointerDown={(event) => onEdge(event, edge)}
                onKeyDown={(event) => onEdgeKey(event, edge)}
              />
            ))
          : null}
      </div>
      <span class="clock end">{clock(end)}</span>
    </div>
  );
}

function order(a: number, b: number): [number, number] {
  return a < b ? [a, b] : [b, a];
}
