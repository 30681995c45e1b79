// A color: the browser's picker, and opacity where there is one. Filters take shares, nodes texts.
import type { JSX } from "preact";
import type { Json, Param } from "../types";
import { NumberControl } from "./number";
import { useEdited } from "./edited";

interface Rgba {
  hex: string;
  alpha: number;
}

let probe: CanvasRenderingContext2D | null = null;

/** Any value a color parameter may have, as #rrggbb and an opacity. */
export function parseColor(value: Json): Rgba {
  if (typeof value === "number") return { hex: hexOf([value, value, value]), alpha: 1 };
  if (Array.isArray(value)) {
    const numbers = value.map(Number);
    return { hex: hexOf(numbers), alpha: numbers.length > 3 ? numbers[3] : 1 };
  }
  if (typeof value !== "string" || value === "") return { hex: "#000000", alpha: 1 };
  if (value === "transparent") return { hex: "#000000", alpha: 0 };
  probe ??= document.createElement("canvas").getContext("2d")!;
  probe.fillStyle = "#000000";
  probe.fillStyle = value;
  const text = probe.fillStyle as string;
  if (text.startsWith("#")) return { hex: text, alpha: 1 };
  const parts = /rgba?\((\d+), (\d+), (\d+)(?:, ([\d.]+))?\)/.exec(text);
  if (!parts) return { hex: "#000000", alpha: 1 };
  return { hex: hexOf(parts.slice(1, 4).map((each) => Number(each) / 255)), alpha: Number(parts[4] ?? 1) };
}

function hexOf(shares: number[]): string {
  const byte = (share: number) =>
    Math.round(Math.min(Math.max(share || 0, 0), 1) * 255).toString(16).padStart(2, "0");
  return `#${byte(shares[0])}${byte(shares[1])}${byte(shares[2])}`;
}

function shares({ hex, alpha }: Rgba, count: number): number[] {
  const values = [1, 3, 5].map((at) => Math.round((parseInt(hex.slice(at, at + 2), 16) / 255) * 1e4) / 1e4);
  return count === 4 ? [...values, alpha] : values;
}

export function ColorControl(props: {
  param: Param;
  label: string;
  value: Json;
  set: (value: Json) => void;
  textual: boolean;
  id?: string;
}): JSX.Element {
  const [shown, edit] = useEdited<Json>(props.value, props.set);
  const color = parseColor(shown ?? props.param.default ?? null);
  const withAlpha = props.textual || props.param.alpha === true;
  function put(next: Rgba): void {
    if (props.textual) {
      const tail = next.alpha < 1 ? Math.round(next.alpha * 255).toString(16).padStart(2, "0") : "";
      edit(next.hex + tail);
    } else edit(shares(next, props.param.alpha ? 4 : 3));
  }
  return (
    <div class="color">
      <input
        id={props.id}
        type="color"
        aria-label={props.label}
        value={color.hex}
        onInput={(event) => put({ ...color, hex: event.currentTarget.value })}
      />
      <input
        type="text"
        class="box hex"
        aria-label={`${props.label}, hexadecimal`}
        value={shown === null ? "" : color.hex}
        placeholder="auto"
        spellcheck={false}
        onChange={(event) => {
          const text = event.currentTarget.value.trim();
          const match = /^#?([0-9a-f]{3}|[0-9a-f]{6})$/i.exec(text);
          if (match) {
            const digits = match[1].length === 3 ? [...match[1]].map((each) => each + each).join("") : match[1];
            put({ ...color, hex: `#${digits.toLowerCase()}` });
          } else if (props.textual && text) edit(text);
        }}
      />
      {withAlpha ? (
        <NumberControl
          param={{ name: "opacity", type: "number", default: 1, low: 0, high: 1, slider: [0, 1, 0.01] }}
          label={`${props.label}, opacity`}
          value={color.alpha}
          set={(alpha) => put({ ...color, alpha: alpha ?? 1 })}
        />
      ) : null}
    </div>
  );
}
