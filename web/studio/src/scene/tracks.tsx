// Animations as tracks: key frames are dragged in time, their values and easings edited.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { duration, seek } from "../picture/timeline";
import { clock } from "../picture/geometry";
import { NumberBox } from "../controls/number";
import { ask, catalogue, currentGesture, drawer, now, selectedNode } from "../store";
import type { Json, Key, SceneNode, Track } from "../types";
import { Icon } from "../ui/icons";
import { IconButton, drag } from "../ui/parts";
import { animated, nameOf } from "./scene";

interface Chosen {
  node: string;
  property: string;
  time: number;
}

export function Tracks(): JSX.Element {
  const chosen = useSignal<Chosen | null>(null);
  const list = animated();
  const end = Math.max(duration(), ...list.flatMap((each) => each.animations.flatMap((track) => track.keyframes.map((key) => key[0]))), 0.1);
  const owner = list.find((each) => each.id === chosen.value?.node);
  const track = owner?.animations.find((each) => each.property === chosen.value?.property);
  const key = track?.keyframes.find((each) => Math.abs(each[0] - chosen.value!.time) < 1e-4);
  return (
    <section class="drawer tracks" aria-label="Key frames">
      <header class="drawer-head">
        <Icon name="diamond" size={16} />
        <b>Key frames</b>
        {owner && track && key ? <KeyEditor owner={owner} track={track} value={key} chosen={chosen} /> : <span class="quiet">Select a key frame to edit it.</span>}
        <span class="grow" />
        <IconButton icon="close" label="Close the key frames" onClick={() => (drawer.value = null)} />
      </header>
      <div class="track-rows">
        <Ruler end={end} />
        {list.map((each) => each.animations.map((own) => (
          <TrackRow key={`${each.id} ${own.property}`} owner={each} track={own} end={end} chosen={chosen} />
        )))}
        {list.length === 0 ? <p class="quiet center">Nothing is animated. The diamond next to a property adds a key frame at the present time.</p> : null}
      </div>
    </section>
  );
}

function Ruler({ end }: { end: number }): JSX.Element {
  const step = [0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300].find((each) => end / each <= 12) ?? 600;
  const marks = Array.from({ length: Math.floor(end / step + 1e-6) + 1 }, (_, index) => index * step);
  return (
    <div class="track-row ruler" aria-hidden="true">
      <span class="track-name" />
      <div class="track-lane" onPointerDown={(event) => {
        const box = event.currentTarget.getBoundingClientRect();
        const go = (next: PointerEvent) => seek(((next.clientX - box.left) / box.width) * end);
        go(event);
        drag(event, go);
      }}>
        {marks.map((mark) => (
          <span key={mark} class="ruler-mark" style={{ left: `${(mark / end) * 100}%` }}>{mark < 60 ? `${Number(mark.toFixed(1))}s` : clock(mark)}</span>
        ))}
        <span class="lane-now" style={{ left: `${Math.min(now.value / end, 1) * 100}%` }} />
      </div>
    </div>
  );
}

function TrackRow(props: { owner: SceneNode; track: Track; end: number; chosen: { value: Chosen | null } }): JSX.Element {
  const { owner, track, end, chosen } = props;
  const lane = useRef<HTMLDivElement>(null);
  const moving = useSignal<{ from: number; to: number } | null>(null);
  const editable = track.editable !== false;

  function select(time: number): void {
    selectedNode.value = owner.id;
    chosen.value = { node: owner.id, property: track.property, time };
  }
  async function move(key: Key, to: number): Promise<void> {
    const time = Math.round(Math.min(Math.max(to, 0), end) * 1000) / 1000;
    if (Math.abs(time - key[0]) < 1e-4) return;
    const place = { node: owner.id, property: track.property, drag: currentGesture() };
    await ask("key_remove", { ...place, time: key[0] });
    await ask("key_set", { ...place, time, value: key[1], ...(key[2] ? { easing: key[2] } : {}) });
    chosen.value = { node: owner.id, property: track.property, time };
  }
  function onPointerDown(event: PointerEvent, key: Key): void {
    event.stopPropagation();
    select(key[0]);
    if (!editable) return;
    const box = lane.current!.getBoundingClientRect();
    const start = event.clientX;
    drag(
      event,
      (next) => {
        if (moving.value || Math.abs(next.clientX - start) > 3) {
          const to = ((next.clientX - box.left) / box.width) * end;
          moving.value = { from: key[0], to: Math.min(Math.max(to, 0), end) };
        }
      },
      (_, cancelled) => {
        const last = moving.value;
        moving.value = null;
        if (last && !cancelled) void move(key, last.to);
      },
    );
  }
  function onKeyDown(event: KeyboardEvent, key: Key): void {
    const by = event.shiftKey ? 0.5 : 1 / 30;
    if (event.key === "ArrowLeft") void move(key, key[0] - by);
    else if (event.key === "ArrowRight") void move(key, key[0] + by);
    else if (event.key === "Delete" || event.key === "Backspace") {
      void ask("key_remove", { node: owner.id, property: track.property, time: key[0], drag: currentGesture() });
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
  const times = track.keyframes.map((key) => key[0]);
  const [first, last] = [Math.min(...times), Math.max(...times)];
  return (
    <div class="track-row" data-testid={`track-${track.property}`}>
      <button type="button" class="track-name" onClick={() => (selectedNode.value = owner.id)}>
        <span>{nameOf(owner)}</span>
        <small>{track.property.replaceAll("_", " ")}</small>
      </button>
      <div class="track-lane" ref={lane} onPointerDown={(event) => {
        const box = lane.current!.getBoundingClientRect();
        seek(((event.clientX - box.left) / box.width) * end);
      }}>
        <span class="lane-span" style={{ left: `${(first / end) * 100}%`, width: `${((last - first) / end) * 100}%` }} />
        {track.keyframes.map((key) => {
          const at = moving.value && moving.value.from === key[0] ? moving.value.to : key[0];
          const is = chosen.value?.node === owner.id && chosen.value.property === track.property && Math.abs(chosen.value.time - key[0]) < 1e-4;
          return (
            <button
              key={key[0]}
              type="button"
              class={`keyframe${is ? " chosen" : ""}`}
             
              aria-label={`${track.property} of ${nameOf(owner)} at ${key[0]} s: ${JSON.stringify(key[1])}. Arrow keys move it, Delete removes it.`}
              title={`${key[0]} s: ${JSON.stringify(key[1])}${key[2] ? `, ${key[2]}` : ""}`}
              style={{ left: `${(at / end) * 100}%` }}
              onPointerDown={(event) => onPointerDown(event, key)}
              onFocus={() => select(key[0])}
              onKeyDown={(event) => onKeyDown(event, key)}
            />
          );
        })}
        <span class="lane-now" style={{ left: `${Math.min(now.value / end, 1) * 100}%` }} />
      </div>
    </div>
  );
}

function KeyEditor(props: { owner: SceneNode; track: Track; value: Key; chosen: { value: Chosen | null } }): JSX.Element {
  const { owner, track, value, chosen } = props;
  const [time, held, easing] = value;
  const editable = track.editable !== false;
  function put(next: Json, ease: string | undefined): void {
    void ask("key_set", {
      node: owner.id, property: track.property, time, value: next, drag: currentGesture(), ...(ease ? { easing: ease } : {}),
    });
  }
  return (
    <div class="key-editor" role="group" aria-label="Key frame">
      <span>{nameOf(owner)} · {track.property.replaceAll("_", " ")} · {clock(time)}</span>
      {typeof held === "number" ? (
        <NumberBox label="Value" value={held} step={0.1} whole={false} set={(next) => next !== null && put(next, easing)} />
      ) : (
        <input
          type="text" class="box text" aria-label="Value" value={typeof held === "string" ? held : JSON.stringify(held)}
          onKeyDown={(event) => event.stopPropagation()}
          onChange={(event) => {
            const text = event.currentTarget.value;
            let next: Json = text;
            try { next = JSON.parse(text); } catch { /* a color or another text */ }
            put(next, easing);
          }}
        />
      )}
      <span class="select">
        <select aria-label="Easing" value={easing ?? "linear"} disabled={!editable} onChange={(event) => put(held, event.currentTarget.value)}>
          {catalogue.value.easings.map((each) => <option key={each}>{each}</option>)}
        </select>
        <Icon name="chevron" size={14} />
      </span>
      <IconButton icon="trash" size={15} label="Remove the key frame" disabled={!editable} onClick={() => {
        chosen.value = null;
        void ask("key_remove", { node: owner.id, property: track.property, time, drag: currentGesture() });
      }} />
    </div>
  );
}
