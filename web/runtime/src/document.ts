// The document of an exported chain (chain.json), and how it is loaded.

import type { Expression, Guard } from "./expressions.js";

/** A parameter of a chain. */
export interface Control {
  /** As `run` takes it. */
  name: string;
  filter: string;
  param: string;
  type: "float" | "int" | "bool" | "choice" | "floats" | "ints";
  symbols: string[];
  /** The number of each symbol; of a choice its index. */
  values: number[];
  low?: number;
  high?: number;
  step?: number;
  choices?: string[];
  unit?: string;
  label?: string;
  doc?: string;
  /** Why it is fixed; absent if it can be changed. */
  why?: string;
}

export interface PlanBuffer {
  bytes: Expression;
  /** "input", "output", or a picture of sound and its width, such as "spectrum 256". */
  role?: string;
  table?: Expression;
  data?: number;
}

export type PlanStep =
  | { copy: [number, number] }
  | {
      copy?: undefined;
      shader: number;
      buffers: number[];
      block: string;
      groups: Expression;
      set?: [number, "u" | "f", Expression][];
    };

export interface Plan {
  when: Guard[][];
  buffers: PlanBuffer[];
  steps: PlanStep[];
  shape: Expression[];
  dtype: "u8" | "f32";
  /** Pairs of buffers that change places after each frame. */
  swaps?: [number, number][];
}

export interface ChainDocument {
  format: "dala-chain";
  version: number;
  name: string;
  title: string;
  /** Width and height, where the chain takes pictures of one size only. */
  size: [number, number] | null;
  controls: Control[];
  notes: string[];
  /** What the page gives the kernels: "time", "frame", "pointer", "date", "sound". */
  roles?: string[];
  /** Whether the chain draws by itself, without a picture. */
  generator?: boolean;
  shaders: { file?: string; text?: string }[];
  data: { file?: string; base64?: string }[];
  plans: Record<string, Plan[]>;
  picture?: string;
  still?: string;
}

export interface LoadedDocument {
  document: ChainDocument;
  shaders: string[];
  data: Uint8Array[];
  base: string;
}

const VERSION = 1;

export function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
}

async function fetched(url: string): Promise<Response> {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`dala: ${url}: ${answer.status} ${answer.statusText}`);
  return answer;
}

/** Load a document by its address, by the `#id` of a script element, or as an object. */
export async function loadDocument(source: string | URL | ChainDocument): Promise<LoadedDocument> {
  let document_: ChainDocument;
  let base = globalThis.document?.baseURI ?? globalThis.location?.href ?? "";
  if (typeof source === "string" && source.startsWith("#")) {
    const element = globalThis.document.querySelector(source);
    if (!element) throw new Error(`dala: the page has no element ${source}`);
    document_ = JSON.parse(element.textContent ?? "") as ChainDocument;
  } else if (typeof source === "string" || source instanceof URL) {
    base = new URL(source, base || undefined).href;
    document_ = (await (await fetched(base)).json()) as ChainDocument;
  } else {
    document_ = source;
  }
  if (document_?.format !== "dala-chain") throw new Error("dala: not an exported chain");
  if (document_.version !== VERSION) {
    throw new Error(`dala: the chain has version ${document_.version}, this runtime ${VERSION}`);
  }
  const at = (name: string) => new URL(name, base || undefined).href;
  const shaders = await Promise.all(
    document_.shaders.map(async (s) => s.text ?? (await fetched(at(s.file!))).text()),
  );
  const data = await Promise.all(
    document_.data.map(async (d) =>
      d.base64 !== undefined
        ? bytesOf(d.base64)
        : new Uint8Array(await (await fetched(at(d.file!))).arrayBuffer()),
    ),
  );
  return { document: document_, shaders, data, base };
}
