// The part of a page that shows a chain: `<dala-chain src="chain.json">`, or `mount(element)`.

import { Chain, type Params, shown } from "./chain.js";
import { Clock } from "./clock.js";
import { type ChainDocument, type Control, loadDocument } from "./document.js";
import { Unsupported } from "./gpu.js";
import { type Size, decoded, isSize } from "./pictures.js";
import { analyser } from "./sound.js";
import { STYLE } from "./style.js";

export interface MountOptions {
  /** The address of a chain.json, the `#id` of a script element, or the document itself. */
  src: string | URL | ChainDocument;
  /** The picture to begin with; the exported one by default. */
  picture?: string | URL | Blob;
  /** What to show beside the canvas: "full" (the default), "sliders", or "none". */
  ui?: "full" | "sliders" | "none";
  /** Convert video frames as Dala does on the desktop; see `RunOptions.yuv`. */
  yuv?: boolean;
  /** Fill the window with the picture, with the controls in a panel that hides. */
  fill?: boolean;
}

export interface Mounted {
  /** The chain; undefined where there is no WebGPU. */
  readonly chain: Chain | undefined;
  readonly canvas: HTMLCanvasElement;
  /** The time that kernels are given; it can be paused, and set. */
  readonly clock: Clock;
  /** Change parameters; the sliders follow. */
  set(params: Params): void;
  /** Show a picture or a video: a file or its address, or the camera. */
  open(source: Blob | string | URL | "camera"): Promise<void>;
  /** Let kernels hear a sound: a file, or the microphone. */
  hear(source: Blob | "microphone"): Promise<void>;
  /** Resolves once everything that was asked for is on the canvas. */
  settled(): Promise<void>;
  close(): void;
}

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
  readonly clock = new Clock();
  private readonly time = make("span", { className: "time" });
  private pointer: [number, number, number] = [0, 0, 0];
  private source: ImageBitmap | HTMLVideoElement | Size | undefined;
  private stream: MediaStream | undefined;
  private sound: AnalyserNode | undefined;
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
    if (options.fill) this.panel();
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
    if (doc.roles?.includes("pointer")) this.pointing();
    const first = this.options.picture ?? (doc.picture && this.chain.url(doc.picture));
    if (doc.generator) {
      this.canvas.className = "drawn";
      this.source = this.space();
      new ResizeObserver(() => {
        if (this.closed) return;
        this.source = this.space();
        this.request();
      }).observe(this.canvas);
    } else if (first) await this.open(first);
    if (this.chain.animated) this.animate();
    this.request();
    await this.settled();
  }

  /** The size of what a chain draws by itself: that of the canvas on the screen, but not too much. */
  private space(): Size {
    const { clientWidth: w, clientHeight: h } = this.canvas;
    const scale = Math.min(globalThis.devicePixelRatio || 1, 2, Math.sqrt((1920 * 1080) / Math.max(w * h, 1)));
    return { width: Math.max(Math.round(w * scale), 1), height: Math.max(Math.round(h * scale), 1) };
  }

  /** Run the chain again whenever the display shows a frame, while the clock runs. */
  private animate(): void {
    let seen = true;
    new IntersectionObserver(([entry]) => (seen = entry!.isIntersecting)).observe(this.canvas);
    const next = (now: number) => {
      if (this.closed) return;
      requestAnimationFrame(next);
      if (this.busy || !seen) return; // a frame that takes longer delays the next one
      const { frame } = this.clock;
      this.clock.tick(now);
      this.time.textContent = `${this.clock.time.toFixed(1)} s`;
      if (this.clock.frame !== frame) this.request();
    };
    requestAnimationFrame(next);
  }

  /** Follow the pointer, in pixels of the picture. */
  private pointing(): void {
    const { canvas } = this;
    canvas.style.touchAction = "none";
    const follow = (event: PointerEvent) => {
      const { left, top, width, height } = canvas.getBoundingClientRect();
      const scale = Math.min(width / canvas.width, height / canvas.height) || 1; // as object-fit: contain does
      this.pointer = [
        (event.clientX - left - (width - canvas.width * scale) / 2) / scale,
        (event.clientY - top - (height - canvas.height * scale) / 2) / scale,
        event.buttons ? 1 : 0,
      ];
      this.request();
    };
    for (const kind of ["pointermove", "pointerdown", "pointerup", "pointercancel"] as const) {
      canvas.addEventListener(kind, follow);
    }
  }

  /** A panel over the picture, and the button that hides it. */
  private panel(): void {
    this.frame.classList.add("fill");
    const small = matchMedia("(max-width: 40rem)").matches;
    const button = make("button", { type: "button", className: "toggle" });
    button.innerHTML =
      '<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M4 7h9m5 0h2M4 17h3m5 0h8"/><circle cx="15.5" cy="7" r="2.5"/><circle cx="9.5" cy="17" r="2.5"/></svg>';
    const show = (open: boolean) => {
      this.frame.classList.toggle("closed", !open);
      button.setAttribute("aria-expanded", String(open));
      button.title = open ? "Hide the controls (H)" : "Show the controls (H)";
      button.setAttribute("aria-label", button.title);
    };
    const flip = () => show(this.frame.classList.contains("closed"));
    button.addEventListener("click", flip);
    this.keys = (event: KeyboardEvent) => {
      const typing = event.composedPath()[0] instanceof HTMLInputElement || event.ctrlKey || event.metaKey || event.altKey;
      if (!typing && event.key.toLowerCase() === "h") flip();
    };
    document.addEventListener("keydown", this.keys);
    this.frame.append(button);
    show(!small);
  }
  private keys: ((event: KeyboardEvent) => void) | undefined;

  /** Play, pause, restart and speed. */
  private transport(): HTMLElement {
    const { clock } = this;
    const play = make("button", { type: "button", className: "play" });
    const update = () => (play.textContent = clock.playing ? "Pause" : "Play");
    play.addEventListener("click", () => {
      clock.playing = !clock.playing;
      update();
    });
    update();
    const restart = make("button", { type: "button", textContent: "Restart" });
    restart.addEventListener("click", () => {
      clock.restart();
      this.time.textContent = "0.0 s";
      this.request();
    });
    const speeds = ["0.25", "0.5", "1", "2", "4"].map((n) => make("option", { value: n, textContent: `${n}\u00d7`, selected: n === "1" }));
    const speed = make("select", { ariaLabel: "Speed" }, ...speeds);
    speed.addEventListener("input", () => (clock.speed = Number(speed.value)));
    return make("div", { className: "bar" }, play, restart, speed, this.time);
  }

  /** The buttons that choose a sound. */
  private hearing(): HTMLElement {
    const input = make("input", { type: "file", accept: "audio/*" });
    input.addEventListener("change", () => {
      const file = input.files?.[0];
      if (file) void this.hear(file);
      input.value = "";
    });
    const microphone = make("button", { type: "button", textContent: "Microphone" });
    microphone.addEventListener("click", () => void this.hear("microphone"));
    return make("div", { className: "bar" }, make("label", { className: "file" }, "Sound", input), microphone);
  }

  async hear(source: Blob | "microphone"): Promise<void> {
    this.trouble.hidden = true;
    try {
      let stream: MediaStream | undefined;
      if (source === "microphone") {
        if (!navigator.mediaDevices) throw new Error("Browsers offer microphones only to secure pages: https, or localhost.");
        stream = await navigator.mediaDevices.getUserMedia({ audio: true });
      }
      const context = new AudioContext();
      const ended = () => stream?.getTracks().forEach((track) => track.stop());
      if (stream) this.listen(new MediaStreamAudioSourceNode(context, { mediaStream: stream }), ended);
      else {
        const buffer = await context.decodeAudioData(await (source as Blob).arrayBuffer());
        const node = new AudioBufferSourceNode(context, { buffer, loop: true });
        node.connect(context.destination);
        node.start();
        this.listen(node, ended);
      }
    } catch (error) {
      this.trouble.textContent = textOf(error);
      this.trouble.hidden = false;
      this.tell(error);
    }
  }

  /** Hear a node instead of the last one, which ends. */
  private listen(node: AudioNode, ended: () => void): void {
    this.deaf?.();
    this.sound = analyser(node);
    this.deaf = () => {
      ended();
      void (node.context as AudioContext).close();
      this.sound = this.deaf = undefined;
    };
    this.request();
  }
  private deaf: (() => void) | undefined;

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
      ? `${text} Until then, this is a still picture of the result.`
      : text;
    this.frame.classList.add("bare");
    this.side.remove();
    this.view.replaceChildren(problem, ...(still ? [make("img", { src: still, alt: "Still picture of the result" })] : []));
  }

  private controls(chain: Chain): void {
    const side = this.side;
    if (this.options.fill) side.append(make("h1", { className: "title", textContent: chain.document.title }));
    if (chain.animated) side.append(this.transport());
    if (chain.document.roles?.includes("sound")) side.append(this.hearing());
    if ((this.options.ui ?? "full") === "full" && !chain.document.generator) {
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
    const name = c.label || c.param.replaceAll("_", " ");
    const title = c.unit ? `${name} (${c.unit})` : name;
    const row = (input: HTMLElement, more?: Node, part = "") => {
      const name = make("span", { textContent: title + part });
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
      if (blob.type.startsWith("audio/")) return await this.hear(blob);
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
      if (!this.chain?.animated) this.request();
      this.loop = "requestVideoFrameCallback" in video ? video.requestVideoFrameCallback(next) : requestAnimationFrame(next);
    };
    next();
    await this.settled();
  }

  /** Leave the present source, and release what it holds. */
  private leave(): void {
    const { source } = this;
    this.source = undefined;
    if (source instanceof HTMLVideoElement) {
      source.pause();
      if ("cancelVideoFrameCallback" in source) source.cancelVideoFrameCallback(this.loop);
      source.srcObject = null;
      source.removeAttribute("src");
    } else if (source instanceof ImageBitmap) source.close();
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
      if (this.original && !isSize(source)) await this.plain(source);
      else {
        const yuv = this.options.yuv === true && source instanceof HTMLVideoElement && "VideoFrame" in globalThis;
        const frame = yuv ? new VideoFrame(source) : undefined;
        try {
          const { time, frame: number } = this.clock;
          const moment = chain.animated ? { time, frame: number } : {};
          const made = await chain.draw(frame ?? source, this.canvas, this.params, {
            fit: true, yuv, pointer: this.pointer, sound: this.sound, ...moment,
          });
          this.report(undefined, `${made.width} x ${made.height}`);
        } finally {
          frame?.close();
        }
      }
      if (!(source instanceof HTMLVideoElement) && !(chain.animated && this.clock.playing)) {
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
    this.deaf?.();
    if (this.keys) document.removeEventListener("keydown", this.keys);
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

/** `<dala-chain src="chain.json" ui="full | sliders | none" picture="..." yuv fill>`. */
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
      fill: this.hasAttribute("fill"),
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
