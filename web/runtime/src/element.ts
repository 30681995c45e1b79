// The part of a page that shows a chain: `<dala-chain src="chain.json">`, or `mount(element)`.

import { Chain, type Params, shown } from "./chain.js";
import { type ChainDocument, type Control, loadDocument } from "./document.js";
import { Unsupported } from "./gpu.js";
import { decoded } from "./pictures.js";

export interface MountOptions {
  /** The address of a chain.json, the `#id` of a script element, or the document itself. */
  src: string | URL | ChainDocument;
  /** The picture to begin with; the exported one by default. */
  picture?: string | URL | Blob;
  /** What to show beside the canvas: "full" (the default), "sliders", or "none". */
  ui?: "full" | "sliders" | "none";
  /** Convert video frames as Dala does on the desktop; see `RunOptions.yuv`. */
  yuv?: boolean;
}

export interface Mounted {
  /** The chain; undefined where there is no WebGPU. */
  readonly chain: Chain | undefined;
  readonly canvas: HTMLCanvasElement;
  /** Change parameters; the sliders follow. */
  set(params: Params): void;
  /** Show a picture or a video: a file or its address, or the camera. */
  open(source: Blob | string | URL | "camera"): Promise<void>;
  /** Resolves once everything that was asked for is on the canvas. */
  settled(): Promise<void>;
  close(): void;
}

const STYLE = `
:host { display: block; }
.dala { display: grid; gap: .75rem; grid-template-columns: minmax(0, 1fr) minmax(12rem, 18rem); align-items: start; }
.dala[data-ui=none], .dala.bare { grid-template-columns: minmax(0, 1fr); }
@media (max-width: 40rem) { .dala { grid-template-columns: minmax(0, 1fr); } }
.view { position: relative; min-width: 0; }
canvas, img { display: block; max-width: 100%; max-height: 80vh; height: auto; margin: auto;
  background: repeating-conic-gradient(#8883 0 25%, #0000 0 50%) 0 0 / 16px 16px; }
.over canvas { outline: 3px dashed Highlight; }
.side { display: grid; gap: .6rem; font: 14px/1.3 system-ui, sans-serif; }
.bar { display: flex; flex-wrap: wrap; gap: .4rem; align-items: center; }
button, .file { font: inherit; padding: .3rem .7rem; border: 1px solid #8888; border-radius: .4rem;
  background: #8882; color: inherit; cursor: pointer; }
button:hover, .file:hover { background: #8884; }
button:focus-visible, .file:focus-within, input:focus-visible, select:focus-visible { outline: 2px solid Highlight; }
.file input { position: absolute; opacity: 0; width: 1px; height: 1px; }
label.row { display: grid; grid-template-columns: 1fr auto; gap: .1rem .5rem; }
label.row input[type=range] { grid-column: 1 / -1; width: 100%; margin: 0; }
.number { font-variant-numeric: tabular-nums; opacity: .75; }
.status { opacity: .75; font-variant-numeric: tabular-nums; min-height: 1.3em; }
.problem { padding: .6rem .8rem; border-radius: .4rem; background: #d7263d22; border: 1px solid #d7263d88; }
h2 { font-size: 1em; margin: .4rem 0 0; }
`;

function make<K extends keyof HTMLElementTagNameMap>(
  name: K,
  facts: Partial<HTMLElementTagNameMap[K]> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  Object.assign(made, facts);
  made.append(...children);
  return made;
}

const textOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

class View implements Mounted {
  chain: Chain | undefined;
  readonly canvas = make("canvas", { tabIndex: 0 });
  private readonly side = make("div", { className: "side" });
  private readonly status = make("div", { className: "status" });
  /** Why something could not be opened; it stays until something else is. */
  private readonly trouble = make("div", { className: "problem", hidden: true });
  private readonly frame: HTMLElement;
  private readonly params: Params = {};
  private readonly setters = new Map<string, (value: Params[string]) => void>();
  private source: ImageBitmap | HTMLVideoElement | undefined;
  private stream: MediaStream | undefined;
  private address: string | undefined;
  private original = false;
  private closed = false;
  private loop = 0;
  private busy: Promise<void> | undefined;
  private again = false;
  private times: number[] = [];
  private readonly ready: Promise<void>;
  private readonly view = make("div", { className: "view" });

  constructor(root: HTMLElement | ShadowRoot, private readonly options: MountOptions) {
    const ui = options.ui ?? "full";
    this.frame = make("div", { className: "dala" }, this.view);
    this.frame.dataset.ui = ui;
    this.view.append(this.canvas);
    if (ui !== "none") this.frame.append(this.side);
    root.replaceChildren(make("style", { textContent: STYLE }), this.frame);
    this.canvas.setAttribute("role", "img");
    this.dropping();
    this.ready = this.begin();
  }

  private async begin(): Promise<void> {
    try {
      this.chain = await Chain.load(this.options.src);
    } catch (error) {
      await this.without(error);
      return;
    }
    if (this.closed) return this.chain.close();
    const { document: doc } = this.chain;
    this.canvas.setAttribute("aria-label", doc.title);
    this.controls(this.chain);
    const first = this.options.picture ?? (doc.picture && this.chain.url(doc.picture));
    if (first) await this.open(first);
  }

  /** Say why there is no result, and show the still. */
  private async without(error: unknown): Promise<void> {
    const text = textOf(error);
    let still: string | undefined;
    if (error instanceof Unsupported) {
      const { document: doc, base } = await loadDocument(this.options.src);
      if (doc.still) still = new URL(doc.still, base || undefined).href;
    }
    const problem = make("p", { className: "problem" });
    problem.setAttribute("role", "alert");
    problem.textContent = still
      ? `${text} This is a still picture of the result. Chrome, Edge, Safari 26 and Firefox 141 or newer have WebGPU.`
      : text;
    this.frame.classList.add("bare");
    this.side.remove();
    this.view.replaceChildren(problem, ...(still ? [make("img", { src: still, alt: "Still picture of the result" })] : []));
  }

  private controls(chain: Chain): void {
    const side = this.side;
    if ((this.options.ui ?? "full") === "full") {
      const input = make("input", { type: "file", accept: "image/*,video/*" });
      input.addEventListener("change", () => {
        const file = input.files?.[0];
        if (file) void this.open(file);
        input.value = "";
      });
      const camera = make("button", { type: "button", textContent: "Camera" });
      camera.addEventListener("click", () => void this.open("camera"));
      const before = make("button", { type: "button", textContent: "Original", title: "Hold to see the picture as it was" });
      before.setAttribute("aria-pressed", "false");
      const press = (on: boolean) => {
        this.original = on;
        before.setAttribute("aria-pressed", String(on));
        this.request();
      };
      before.addEventListener("pointerdown", () => press(true));
      for (const end of ["pointerup", "pointerleave", "blur"]) {
        before.addEventListener(end, () => this.original && press(false));
      }
      before.addEventListener("keydown", (e) => (e.key === " " || e.key === "Enter") && !e.repeat && press(!this.original));
      side.append(make("div", { className: "bar" }, make("label", { className: "file" }, "Picture or video", input), camera, before));
    }
    let filter = "";
    for (const c of chain.controls) {
      if (c.filter !== filter) side.append(make("h2", { textContent: c.filter.replaceAll("_", " ") }));
      filter = c.filter;
      side.append(...this.control(c));
    }
    if (chain.controls.length) {
      const reset = make("button", { type: "button", textContent: "Reset" });
      reset.addEventListener("click", () => {
        this.set(Object.fromEntries(chain.controls.map((c) => [c.name, shown(c, c.values)])));
      });
      side.append(make("div", { className: "bar" }, reset));
    }
    this.status.setAttribute("aria-live", "off");
    this.trouble.setAttribute("role", "alert");
    side.append(this.status, this.trouble);
  }

  /** The rows of a control: a slider for each number, a menu, a box to tick, or a color. */
  private control(c: Control): HTMLElement[] {
    const change = (value: Params[string]) => {
      this.params[c.name] = value;
      this.request();
    };
    const title = c.unit ? `${c.param} (${c.unit})` : c.param;
    const row = (input: HTMLElement, more?: Node, part = "") => {
      const name = make("span", { textContent: title.replaceAll("_", " ") + part });
      return make("label", { className: "row", title: c.doc ?? "" }, name, ...(more ? [more] : []), input);
    };
    if (c.type === "choice") {
      const menu = make("select", {}, ...c.choices!.map((word) => make("option", { value: word, textContent: word })));
      menu.value = c.choices![c.values[0]!]!;
      menu.addEventListener("input", () => change(menu.value));
      this.setters.set(c.name, (v) => (menu.value = String(v)));
      return [row(menu)];
    }
    if (c.type === "bool") {
      const box = make("input", { type: "checkbox", checked: c.values[0] === 1 });
      box.addEventListener("input", () => change(box.checked));
      this.setters.set(c.name, (v) => (box.checked = Boolean(v)));
      return [row(box)];
    }
    if (c.symbols.length === 3 && (c.param === "color" || c.param === "key")) {
      const hex = (n: number[]) => "#" + n.map((x) => Math.round(Math.min(Math.max(x, 0), 1) * 255).toString(16).padStart(2, "0")).join("");
      const picker = make("input", { type: "color", value: hex(c.values) });
      picker.addEventListener("input", () =>
        change([1, 3, 5].map((i) => Number.parseInt(picker.value.slice(i, i + 2), 16) / 255)),
      );
      this.setters.set(c.name, (v) => (picker.value = hex(v as number[])));
      return [row(picker)];
    }
    const now = [...c.values];
    const set: ((n: number) => void)[] = [];
    const rows = c.symbols.map((_, i) => {
      const text = make("span", { className: "number" });
      const slider = make("input", { type: "range" });
      Object.assign(slider, { min: String(c.low), max: String(c.high), step: c.step ? String(c.step) : "any" });
      const update = (n: number) => {
        slider.value = String(n);
        text.textContent = String(Number(n.toPrecision(6)));
      };
      update(now[i]!);
      set.push(update);
      slider.addEventListener("input", () => {
        now[i] = slider.valueAsNumber;
        text.textContent = slider.value;
        change(c.symbols.length === 1 ? now[0]! : [...now]);
      });
      const part = c.symbols.length === 3 ? [" red", " green", " blue"][i]! : c.symbols.length > 1 ? ` ${i + 1}` : "";
      return row(slider, text, part);
    });
    this.setters.set(c.name, (v) => (Array.isArray(v) ? v : c.symbols.map(() => v as number)).forEach((n, i) => {
      now[i] = n;
      set[i]!(n);
    }));
    return rows;
  }

  set(params: Params): void {
    for (const [name, value] of Object.entries(params)) {
      this.params[name] = value;
      this.setters.get(name)?.(value);
    }
    this.request();
  }

  async open(source: Blob | string | URL | "camera"): Promise<void> {
    this.trouble.hidden = true;
    try {
      if (source === "camera") {
        if (!navigator.mediaDevices) throw new Error("Browsers offer cameras only to secure pages: https, or localhost.");
        const stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
        this.leave();
        this.stream = stream;
        await this.play((video) => (video.srcObject = stream));
        return;
      }
      let blob: Blob;
      if (source instanceof Blob) blob = source;
      else {
        const answer = await fetch(source);
        if (!answer.ok) throw new Error(`${source}: ${answer.status} ${answer.statusText}`);
        blob = await answer.blob();
      }
      if (blob.type.startsWith("video/")) {
        this.leave();
        const address = (this.address = URL.createObjectURL(blob));
        await this.play((video) => {
          video.src = address;
          video.loop = true;
        });
        return;
      }
      const picture = await decoded(blob);
      this.leave();
      this.source = picture;
      this.request();
      await this.settled();
    } catch (error) {
      this.trouble.textContent = textOf(error);
      this.trouble.hidden = false;
      this.tell(error);
    }
  }

  /** Play a video, and run the chain on the frames that the display shows. */
  private async play(set: (video: HTMLVideoElement) => void): Promise<void> {
    const video = make("video", { muted: true, playsInline: true });
    set(video);
    await video.play();
    this.source = video;
    this.times = [];
    const next = () => {
      if (this.source !== video || this.closed) return;
      this.request();
      this.loop = "requestVideoFrameCallback" in video ? video.requestVideoFrameCallback(next) : requestAnimationFrame(next);
    };
    next();
    await this.settled();
  }

  /** Leave the present source, and release what it holds. */
  private leave(): void {
    const source = this.source;
    this.source = undefined;
    if (source instanceof HTMLVideoElement) {
      source.pause();
      if ("cancelVideoFrameCallback" in source) source.cancelVideoFrameCallback(this.loop);
      source.srcObject = null;
      source.removeAttribute("src");
    } else source?.close();
    for (const track of this.stream?.getTracks() ?? []) track.stop();
    this.stream = undefined;
    if (this.address) URL.revokeObjectURL(this.address);
    this.address = undefined;
  }

  /** Ask for a run. Requests during a run become one. */
  private request(): void {
    if (this.closed || !this.chain || !this.source) return;
    if (this.busy) {
      this.again = true;
      return;
    }
    this.busy = this.work().finally(() => {
      this.busy = undefined;
      if (this.again) {
        this.again = false;
        this.request();
      }
    });
  }

  private async work(): Promise<void> {
    const { chain, source } = this;
    if (!chain || !source) return;
    const begin = performance.now();
    try {
      if (this.original) await this.plain(source);
      else {
        const yuv = this.options.yuv === true && source instanceof HTMLVideoElement && "VideoFrame" in globalThis;
        const frame = yuv ? new VideoFrame(source) : undefined;
        try {
          const made = await chain.draw(frame ?? source, this.canvas, this.params, { fit: true, yuv });
          this.report(undefined, `${made.width} x ${made.height}`);
        } finally {
          frame?.close();
        }
      }
      if (!(source instanceof HTMLVideoElement)) {
        this.retried = false;
        return;
      }
      this.times = [...this.times.filter((t) => t > begin - 1000), begin];
      const rate = this.times.length > 1 ? Math.round(((this.times.length - 1) * 1000) / (begin - this.times[0]!)) : 0;
      if (rate) this.status.textContent += `, ${rate} frames a second`;
      this.retried = false;
    } catch (error) {
      // A lost device comes back once; then the page says what is wrong.
      if (chain.lost && !this.retried) {
        this.retried = true;
        this.again = true;
      } else this.report(error);
    }
  }
  private retried = false;

  private async plain(source: ImageBitmap | HTMLVideoElement): Promise<void> {
    const identity = (this.identity ??= await Chain.load(await plainDocument()));
    await identity.draw(source, this.canvas);
  }
  private identity: Chain | undefined;

  private report(error: unknown, text = ""): void {
    const problem = error !== undefined;
    this.status.classList.toggle("problem", problem);
    this.status.textContent = problem ? textOf(error) : text;
    if (problem) this.tell(error);
  }

  private tell(error: unknown): void {
    this.frame.dispatchEvent(new CustomEvent("dala-error", { detail: error, bubbles: true, composed: true }));
  }

  private dropping(): void {
    const on = (name: string, act: (event: DragEvent) => void) =>
      this.view.addEventListener(name, (event) => {
        event.preventDefault();
        act(event as DragEvent);
      });
    on("dragover", () => this.view.classList.add("over"));
    on("dragleave", () => this.view.classList.remove("over"));
    on("drop", (event) => {
      this.view.classList.remove("over");
      const file = event.dataTransfer?.files[0];
      if (file) void this.open(file);
    });
  }

  async settled(): Promise<void> {
    while (this.busy) await this.busy;
  }

  /** Resolves once the chain is loaded and its first picture is shown. */
  get begun(): Promise<void> {
    return this.ready;
  }

  close(): void {
    this.closed = true;
    this.leave();
    this.chain?.close();
    this.identity?.close();
  }
}

/** A chain of no dispatches but a copy, which shows a picture as it is. */
async function plainDocument(): Promise<ChainDocument> {
  const bytes: ["*", "w", "h", 4] = ["*", "w", "h", 4];
  return {
    format: "dala-chain", version: 1, name: "", title: "", size: null, controls: [], notes: [],
    shaders: [], data: [],
    plans: {
      rgba: [
        {
          when: [[]], dtype: "u8", shape: ["h", "w", 4], steps: [{ copy: [0, 1] }],
          buffers: [{ bytes, role: "input" }, { bytes, role: "output" }],
        },
      ],
    },
  };
}

/** Show a chain inside an element. Resolves once its first picture is shown, or its still. */
export async function mount(element: HTMLElement, options: MountOptions): Promise<Mounted> {
  const view = new View(element, options);
  await view.begun;
  return view;
}

const Base = (globalThis.HTMLElement ?? class {}) as typeof HTMLElement;

/** `<dala-chain src="chain.json" ui="full | sliders | none" picture="..." yuv>`. */
export class DalaChain extends Base {
  private view: View | undefined;

  connectedCallback(): void {
    const src = this.getAttribute("src");
    if (!src || this.view) return;
    const root = this.shadowRoot ?? this.attachShadow({ mode: "open" });
    const ui = this.getAttribute("ui");
    this.view = new View(root, {
      src,
      ui: ui === "none" || ui === "sliders" ? ui : "full",
      picture: this.getAttribute("picture") ?? undefined,
      yuv: this.hasAttribute("yuv"),
    });
  }

  disconnectedCallback(): void {
    this.view?.close();
    this.view = undefined;
  }

  /** Resolves once the chain is loaded and its first picture is shown. */
  get ready(): Promise<Mounted | undefined> {
    return (this.view?.begun ?? Promise.resolve()).then(() => this.view);
  }
}
