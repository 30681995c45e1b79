// The value of a control while it is being changed: the page's own until the server's has come.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Json } from "../types";

/** Milliseconds after the last change from which the document's value is shown again. */
const SETTLES = 450;

export function useEdited<T extends Json>(value: T, send: (value: T) => void): [T, (value: T) => void] {
  const own = useSignal<{ value: T } | null>(null);
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  function edit(next: T): void {
    own.value = { value: next };
    send(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => (own.value = null), SETTLES) as unknown as number;
  }
  return [own.value === null ? value : own.value.value, edit];
}

/** A number as a person would write it. */
export function plain(value: number): string {
  if (!Number.isFinite(value)) return "";
  if (Number.isInteger(value)) return String(value);
  return String(Number(value.toPrecision(6)));
}
