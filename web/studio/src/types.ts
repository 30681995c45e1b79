// What travels between the page and the server; docs/design/studio.md is the contract.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export type ParamType =
  | "number" | "int" | "bool" | "choice" | "numbers" | "color" | "point" | "size" | "curve" | "lut"
  | "picture" | "map" | "path" | "text" | "any";

export interface Param {
  name: string;
  type: ParamType;
  default?: Json;
  required?: boolean;
  low?: number;
  high?: number;
  /** Low, high and step of a control: always finite. */
  slider?: [number, number, number];
  unit?: string;
  label?: string;
  choices?: string[];
  size?: number;
  spread?: boolean;
  whole?: boolean;
  alpha?: boolean;
  animatable?: boolean;
  doc?: string;
}

export interface Declared {
  name: string;
  title: string;
  category?: string;
  doc: string;
  /** What it is called elsewhere, for the search. */
  words?: string;
  definition?: string;
  resizes?: boolean;
  params: Param[];
  available?: boolean;
  missing?: string;
}

export interface NodeType {
  type: string;
  title: string;
  doc: string;
  /** What its children are called; empty where it has none. */
  holds?: string;
  params: Param[];
}

export interface Word {
  name: string;
  signature: string;
  doc: string;
  kind: string;
}

export interface Catalogue {
  version: string;
  filters: Declared[];
  models: Declared[];
  kernels: { name: string; title: string; text: string }[];
  nodes: NodeType[];
  language: Word[];
  easings: string[];
  samples: { name: string; kind: string }[];
  presets?: { name: string; title: string; doc: string; value: Json }[];
  formats?: { picture: string[]; video: string[] };
  /** The options of rendering. */
  render?: { name: string; default: unknown; low?: number | null; high?: number | null }[];
  codecs: string[];
  limits: { upload?: number; message?: number; cards?: number; tabs?: number };
}

export interface Tab {
  id: string;
  title: string;
  kind: "picture" | "video" | "camera" | "scene" | "kernel";
  width: number;
  height: number;
  duration: number | null;
  rate: number | null;
  live: boolean;
  seekable: boolean;
  dirty?: boolean;
  path?: string | null;
  error?: string | null;
}

export interface Diagnostic {
  line: number;
  column: number;
  end_line?: number;
  end_column?: number;
  message: string;
}

export interface Card {
  id: string;
  kind: "filter" | "kernel" | "model";
  name: string;
  title: string;
  on: boolean;
  params: { [name: string]: Json };
  error?: string | null;
  text?: string;
  path?: string | null;
  declared?: Param[];
  diagnostics?: Diagnostic[];
}

export type Key = [time: number, value: Json, easing?: string];

export interface Track {
  property: string;
  keyframes: Key[];
  editable?: boolean;
}

export interface SceneNode {
  id: string;
  type: string;
  name: string;
  properties: { [name: string]: Json };
  animations: Track[];
  children: SceneNode[];
}

export interface Scene {
  width: number;
  height: number;
  fps?: number | string;
  duration: number | null;
  background?: Json;
  nodes: SceneNode[];
  path?: string | null;
}

export interface StudioState {
  version: number;
  tabs: Tab[];
  active: string | null;
  chain: Card[];
  scene: Scene | null;
  playing: boolean;
  time: number;
  loop: [number, number] | { from: number; to: number } | null;
  undo: boolean;
  redo: boolean;
  result: { width: number; height: number } | null;
  viewers: number;
  folders: string[];
  tracing: boolean;
}

/** The frames of the last seconds: milliseconds ago, since the one before, and by stage. */
export interface FrameTimes {
  budget: number;
  seconds: number;
  colors: { [stage: string]: string };
  frames: [ago: number, ms: number, stages: { [stage: string]: number }][];
}

export interface Stats {
  cards: { [id: string]: number };
  total: number;
  encode?: number;
  rate?: number;
  dropped?: number;
  device?: string;
  passes?: number;
  /** What model cards found, with scores of 0 to 1. */
  results?: { [id: string]: Findings };
}

export interface Findings {
  text: string;
  rows: [name: string, score: number][];
}

export interface Charts {
  histogram?: { r: number[]; g: number[]; b: number[]; luma?: number[] };
  waveform?: { width: number; height: number; values: string };
}

export interface Job {
  id: string;
  title?: string;
  state: "running" | "done" | "failed" | "cancelled";
  done: number;
  total: number | null;
  rate?: number;
  download?: string;
  path?: string;
  /** What is different in an exported page. */
  notes?: string[];
  error?: string | { text: string };
}

export interface PictureHeader {
  seq: number;
  tab: string;
  time: number;
  codec: string;
  key?: boolean;
  width: number;
  height: number;
  which: "after" | "before";
  region: [number, number, number, number];
  result: [number, number];
}

export interface Failure {
  text: string;
  argument?: string | null;
  line?: number | null;
  column?: number | null;
}

export type Reply = { [key: string]: Json | undefined };
