// The page's state: what the server sent, and what only this page knows.
import { batch, computed, signal } from "@preact/signals";
import { Connection, RequestError, type Status } from "./connection";
import { Player } from "./picture/player";
import type {
  Card, Catalogue, Charts, Failure, Job, Json, Param, Reply, SceneNode, Stats, StudioState,
} from "./types";

export const catalogue = signal<Catalogue>({
  version: "", filters: [], models: [], kernels: [], nodes: [], language: [], easings: [], samples: [],
  codecs: [], limits: {},
});
export const status = signal<Status>("connecting");
export const state = signal<StudioState>({
  version: 0, tabs: [], active: null, chain: [], scene: null, playing: false, time: 0, loop: null,
  undo: false, redo: false, result: null, viewers: 1, folders: [], tracing: false,
});
export const stats = signal<Stats>({ cards: {}, total: 0 });
export const charts = signal<Charts>({});
export const jobs = signal<Job[]>([]);
/** The time of the newest picture; while it plays, the state itself is not sent for each. */
export const now = signal(0);

export const selectedCard = signal<string | null>(null);
export const selectedNode = signal<string | null>(null);
type DialogName = "palette" | "open" | "render" | "plan" | "keys" | "code" | "presets";
export const dialog = signal<null | DialogName>(null);

/** Close a dialog by name. A late reply must not close another one that was opened meanwhile. */
export function closeDialog(name: DialogName): void {
  if (dialog.value === name) dialog.value = null;
}
export const code = signal<{ title: string; text: string }>({ title: "", text: "" });
export const panel = signal<"chain" | "scene">("chain");
/** Whether the times of frames are shown. */
export const timing = signal(false);
export const drawer = signal<null | "kernel" | "tracks">(null);

export const tab = computed(() => state.value.tabs.find((each) => each.id === state.value.active) ?? null);
export const card = computed(() => state.value.chain.find((each) => each.id === selectedCard.value) ?? null);
/** All nodes of the scene, parents before their children. */
export const nodes = computed<SceneNode[]>(() => {
  const all: SceneNode[] = [];
  function walk(list: SceneNode[]): void {
    for (const each of list) {
      all.push(each);
      walk(each.children ?? []);
    }
  }
  walk(state.value.scene?.nodes ?? []);
  return all;
});
export const node = computed(() => nodes.value.find((each) => each.id === selectedNode.value) ?? null);
export const loop = computed<[number, number] | null>(() => {
  const value = state.value.loop;
  if (value === null) return null;
  return Array.isArray(value) ? value : [value.from, value.to];
});

// notices -----------------------------------------------------------------------------------------

export interface Toast {
  id: number;
  kind: "notice" | "error" | "done";
  text: string;
  action?: { label: string; run: () => void };
}

export const toasts = signal<Toast[]>([]);
let lastToast = 0;

export function toast(kind: Toast["kind"], text: string, action?: Toast["action"]): void {
  const same = toasts.value.find((each) => each.text === text && each.kind === kind);
  if (same) dismiss(same.id);
  const id = ++lastToast;
  toasts.value = [...toasts.value.slice(-3), { id, kind, text, action }];
  setTimeout(() => dismiss(id), kind === "error" ? 9000 : 4500);
}

export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((each) => each.id !== id);
}

// the server --------------------------------------------------------------------------------------

export const player = new Player((sequence) => connection.tell("seen", { seq: sequence }));
player.onTime = (time) => {
  now.value = time;
};

function apply(message: { [key: string]: Json }): void {
  batch(() => {
    if (message.state) {
      const change = message.state as unknown as Partial<StudioState>;
      const before = state.value;
      state.value = { ...before, ...change };
      if (change.time !== undefined) now.value = change.time;
      if (change.active !== undefined && change.active !== before.active) {
        player.clear(change.active);
        charts.value = {};
        selectedNode.value = null;
      }
      settle(before, change);
    }
    if (message.stats) stats.value = message.stats as unknown as Stats;
    if (message.charts) charts.value = message.charts as unknown as Charts;
    if (message.job) takeJob(message.job as unknown as Job);
    if (message.notice) toast("notice", String(message.notice));
    if (message.error) toast("error", (message.error as unknown as Failure).text);
  });
}

/** Keep selections valid after a change of the document. */
function settle(before: StudioState, change: Partial<StudioState>): void {
  if (change.chain && selectedCard.value && !change.chain.some((each) => each.id === selectedCard.value)) {
    selectedCard.value = null;
    if (drawer.value === "kernel") drawer.value = null;
  }
  if (change.scene !== undefined) {
    if (change.scene === null) {
      panel.value = "chain";
      if (drawer.value === "tracks") drawer.value = null;
    } else if (before.scene === null) {
      panel.value = "scene";
    }
  }
}

function takeJob(job: Job): void {
  const known = jobs.value.find((each) => each.id === job.id);
  const merged = { ...known, ...job };
  jobs.value = known
    ? jobs.value.map((each) => (each.id === job.id ? merged : each))
    : [...jobs.value, merged];
  if (known?.state === job.state) return;
  if (job.state === "done") toast("done", `Finished: ${merged.title ?? "render"}`);
  if (job.state === "failed") {
    const error = typeof job.error === "string" ? job.error : job.error?.text;
    toast("error", error ?? "The render failed.");
  }
  if (job.state === "cancelled") toast("notice", "The render was cancelled.");
}

const address = new URL("ws", document.baseURI);
address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
address.search = "";

export const connection = new Connection(address.href, {
  message: apply,
  picture: (header, payload) => player.take(header, payload),
  status: (value) => {
    const before = status.value;
    status.value = value;
    if (value === "open") {
      player.reset();
      lastView = "";
      sendView();
    }
    if (value === "lost" && before === "open") toast("error", "The connection to the studio was lost. Trying again…");
  },
});

/** Ask the server, after all changes made before; a failure becomes a toast, with what mends it, and null. */
export async function ask(
  name: string,
  values: { [key: string]: unknown } = {},
  mend?: (failure: Failure) => Toast["action"],
): Promise<Reply | null> {
  for (const [key, waiting] of newest) {
    newest.delete(key);
    void send(waiting.name, waiting.values);
  }
  return send(name, values, mend);
}

async function send(
  name: string,
  values: { [key: string]: unknown },
  mend?: (failure: Failure) => Toast["action"],
): Promise<Reply | null> {
  try {
    return await connection.request(name, values);
  } catch (error) {
    if (error instanceof RequestError) {
      if (connection.ready) toast("error", error.message, mend?.(error.failure));
      return null;
    }
    throw error;
  }
}

// changes while a control is dragged --------------------------------------------------------------

interface Change {
  name: string;
  values: { [key: string]: unknown };
}

const outstanding = new Set<string>();
const newest = new Map<string, Change>();

/** Send a change; while one of the same key is unanswered only the newest is kept. */
export function change(key: string, name: string, values: { [key: string]: unknown }): void {
  if (outstanding.has(key)) {
    newest.set(key, { name, values });
    return;
  }
  outstanding.add(key);
  void send(name, values).then(() => {
    outstanding.delete(key);
    const next = newest.get(key);
    if (next) {
      newest.delete(key);
      change(key, next.name, next.values);
    }
  });
}

/** The number of the gesture under way: the changes of one are one step of undo. */
let gesture = Math.floor(performance.timeOrigin) % 1e9;
addEventListener("pointerdown", () => gesture++, { capture: true });
addEventListener("keydown", (event) => (event.repeat ? 0 : gesture++), { capture: true });

export function currentGesture(): number {
  return gesture;
}

export function setParam(owner: Card, param: string, value: Json): void {
  change(`set ${owner.id} ${param}`, "set", { card: owner.id, param, value, drag: gesture });
}

export function setProperty(owner: SceneNode, property: string, value: Json): void {
  change(`node_set ${owner.id} ${property}`, "node_set", { node: owner.id, property, value, drag: gesture });
}

// what this viewer wants to see -------------------------------------------------------------------

export interface View {
  width: number;
  height: number;
  region: [number, number, number, number] | null;
  split: boolean;
  charts: string[];
  paused: boolean;
  exact: boolean;
}

export const view = signal<View>({
  width: 0, height: 0, region: null, split: false, charts: [], paused: false, exact: false,
});
let lastView = "";

export function sendView(): void {
  const { exact, ...rest } = view.value;
  const h264 = catalogue.value.codecs.includes("h264");
  const wanted = { ...rest, codec: exact ? "rgba" : player.codec(h264) };
  const text = JSON.stringify(wanted);
  if (text === lastView || wanted.width < 1 || !connection.ready) return;
  lastView = text;
  connection.request("view", wanted).catch((error) => toast("error", error.message));
}

player.onLost = () => {
  connection.request("view", { key: true }).catch(() => {}); // without a connection all begins anew
};

player.onFallback = () => {
  toast("notice", "This browser cannot decode H.264; pictures come as JPEG.");
  sendView();
};

/** The declarations of a card's parameters. */
export function declarations(of: Card): Param[] {
  if (of.declared) return of.declared;
  const list = of.kind === "model" ? catalogue.value.models : catalogue.value.filters;
  return list.find((each) => each.name === of.name)?.params ?? [];
}

export function documentation(of: Card): string {
  const list = of.kind === "model" ? catalogue.value.models : catalogue.value.filters;
  return list.find((each) => each.name === of.name)?.doc ?? "";
}

export async function loadCatalogue(): Promise<void> {
  const answer = await fetch("catalogue.json", { cache: "no-store" });
  if (!answer.ok) throw new Error(`${answer.status}`);
  catalogue.value = { ...catalogue.value, ...(await answer.json()) };
}

/** Send a file to the server; returns the path under which it can be opened, or null. */
export async function upload(file: File): Promise<string | null> {
  const most = catalogue.value.limits.upload;
  if (most && file.size > most) {
    toast("error", `${file.name} has ${mega(file.size)}; at most ${mega(most)} can be sent.`);
    return null;
  }
  try {
    const answer = await fetch(`upload?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
    const reply = await answer.json().catch(() => ({}));
    if (answer.ok && typeof reply.path === "string") return reply.path;
    toast("error", reply.error?.text ?? `${file.name} could not be sent (${answer.status}).`);
  } catch {
    toast("error", `${file.name} could not be sent: the studio does not answer.`);
  }
  return null;
}

/** Send files and open each as a tab. */
export async function openFiles(files: Iterable<File>): Promise<void> {
  for (const file of files) {
    toast("notice", `Opening ${file.name}…`);
    const path = await upload(file);
    if (path !== null) await ask("open", { path });
  }
}

function mega(bytes: number): string {
  return bytes >= 1 << 20 ? `${(bytes / (1 << 20)).toFixed(1)} MB` : `${Math.ceil(bytes / 1024)} kB`;
}
