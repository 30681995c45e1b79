// A number: a slider over the sensible range, and a box that takes every accepted value.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import type { Param } from "../types";
import { plain, useEdited } from "./edited";

interface Props {
  param: Param;
  label: string;
  value: number | null;
  set: (value: number | null) => void;
  id?: string;
}

/** Low, high and step of a slider; where the declaration has no range, one around the default. */
function rangeOf(param: Param): [number, number, number] {
  if (param.slider) return param.slider;
  const whole = param.type === "int";
  const first = Array.isArray(param.default) ? param.default[0] : param.default;
  const middle = typeof first === "number" ? first : (param.low ?? 0);
  const reach = Math.max(1, 2 * Math.abs(middle)) * (whole ? 10 : 1);
  const low = param.low ?? middle - reach;
  const high = param.high ?? Math.max(middle + reach, low + reach);
  return [low, high, whole ? 1 : 0.01];
}

export function NumberControl({ param, label, value, set, id }: Props): JSX.Element {
  const [shown, edit] = useEdited(value, set);
  const whole = param.type === "int";
  const [low, high, step] = rangeOf(param);
  const at = shown ?? (typeof param.default === "number" ? param.default : low);
  const share = (each: number) => (high > low ? Math.min(Math.max((each - low) / (high - low), 0), 1) * 100 : 0);
  // A range around zero is filled from zero.
  const [from, until] = low < 0 && high > 0 ? [share(Math.min(at, 0)), share(Math.max(at, 0))] : [0, share(at)];
  return (
    <div class="number">
      <input
        id={id}
        type="range"
        class={shown === null ? "range automatic" : "range"}
        aria-label={label}
        aria-valuetext={shown === null ? "automatic" : `${plain(at)}${param.unit ? ` ${param.unit}` : ""}`}
        min={low}
        max={high}
        step={whole ? Math.max(1, Math.round(step)) : step}
        value={at}
        style={{ "--from": `${from}%`, "--filled": `${until}%` }}
        onInput={(event) => edit(Number(event.currentTarget.value))}
      />
      <NumberBox
        label={`${label}, value`}
        value={shown}
        low={param.low}
        high={param.high}
        step={whole ? 1 : step}
        whole={whole}
        empty={param.default === null || param.default === undefined}
        set={edit}
      />
    </div>
  );
}

export function NumberBox(props: {
  label: string;
  value: number | null;
  low?: number;
  high?: number;
  step: number;
  whole: boolean;
  empty?: boolean;
  set: (value: number | null) => void;
}): JSX.Element {
  const draft = useSignal<string | null>(null);
  function commit(text: string): void {
    draft.value = null;
    if (text.trim() === "") {
      if (props.empty) props.set(null);
      return;
    }
    let next = Number(text.replace(",", "."));
    if (!Number.isFinite(next)) return;
    if (props.whole) next = Math.round(next);
    next = Math.min(Math.max(next, props.low ?? -Infinity), props.high ?? Infinity);
    if (next !== props.value) props.set(next);
  }
  return (
    <input
      type="text"
      inputMode="decimal"
      class="box"
      aria-label={props.label}
      placeholder="auto"
      autocomplete="off"
      spellcheck={false}
      value={draft.value ?? (props.value === null ? "" : plain(props.value))}
      onFocus={(event) => event.currentTarget.select()}
      onInput={(event) => (draft.value = event.currentTarget.value)}
      onBlur={(event) => commit(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key === "Enter") commit(event.currentTarget.value);
        else if (event.key === "Escape") {
          draft.value = null;
          event.currentTarget.blur();
        } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
          event.preventDefault();
          const from = Number(event.currentTarget.value.replace(",", ".")) || 0;
          const by = (event.key === "ArrowUp" ? 1 : -1) * props.step * (event.shiftKey ? 10 : 1);
          commit(plain(from + by));
        } else return;
        event.stopPropagation();
      }}
    />
  );
}

/** Several numbers; with `spread` one slider for all of them until they are taken apart. */
export function NumbersControl(props: {
  param: Param;
  label: string;
  value: number | number[] | null;
  set: (value: number | number[] | null) => void;
  names?: string[];
}): JSX.Element {
  const { param, label } = props;
  const [shown, edit] = useEdited<number | number[] | null>(props.value, props.set);
  const size = param.size || (Array.isArray(shown) ? shown.length : 0) || 1;
  const together = param.spread && !Array.isArray(shown);
  const names = props.names ?? (size === 3 || size === 4 ? ["R", "G", "B", "A"] : []);
  const list = Array.isArray(shown) ? shown : Array<number>(size).fill(typeof shown === "number" ? shown : 0);
  const step = rangeOf(param)[2];
  const boxes = (
    <div class="boxes">
      {Array.from({ length: size }, (_, index) => (
        <label key={index} class="boxed">
          {names[index] ? <span aria-hidden="true">{names[index]}</span> : null}
          <NumberBox
            label={`${label} ${names[index] ?? index + 1}`}
            value={shown === null ? null : (list[index] ?? 0)}
            low={param.low}
            high={param.high}
            step={step}
            whole={param.whole === true}
            empty={param.default === null}
            set={(next) => {
              if (next === null) return edit(null);
              const values = Array.from({ length: size }, (_, at) => list[at] ?? 0);
              values[index] = next;
              edit(values);
            }}
          />
        </label>
      ))}
    </div>
  );
  if (!param.spread) return boxes;
  return (
    <div class="spread">
      {together ? (
        <NumberControl
          param={{ ...param, type: param.whole ? "int" : "number" }}
          label={label}
          value={typeof shown === "number" ? shown : null}
          set={edit}
        />
      ) : (
        boxes
      )}
      <button
        type="button"
        class="link small apart"
        onClick={() => edit(together ? list : (list[0] ?? 0))}
        aria-label={together ? `${label}: separate values` : `${label}: one value for all`}
      >
        {together ? "separate" : "one value"}
      </button>
    </div>
  );
}
