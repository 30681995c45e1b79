// A loaded chain: it chooses the plan for a picture's size and its parameters, and runs it.

import { type ChainDocument, type Control, type LoadedDocument, type Plan, loadDocument } from "./document.js";
import { type Numbers, evaluate, holds } from "./expressions.js";
import { type Gpu, forgetGpu, sharedGpu } from "./gpu.js";
import { Instance } from "./instance.js";
import {
  type External,
  type RawPicture,
  type Size,
  type Source,
  decoded,
  isEncoded,
  isRaw,
  isSize,
  isVideoFrame,
  scaled,
  sizeOf,
} from "./pictures.js";

/** Parameters by name: numbers, lists of numbers, words of choices, true or false. */
export type Params = Record<string, number | number[] | string | boolean>;

export interface RunOptions {
  /** Scale pictures of sizes that the chain does not take; otherwise they are refused. */
  fit?: boolean;
  /**
   * Convert video frames in NV12 and I420 as Dala does on the desktop, if the chain was exported
   * for it, instead of as the browser does. Takes a copy of the frame through memory.
   */
  yuv?: boolean;
  /** Seconds since the beginning, for kernels that ask for the time. */
  time?: number;
  /**
   * The frame's number; by default one more than the last. Programs that remember frames take the
   * same number as the same frame again, and begin anew with a lower one.
   */
  frame?: number;
  /** The pointer in pixels of the picture, and 1 while it is pressed. */
  pointer?: [number, number, number];
  /** The sound that kernels hear; `analyser(node)` makes it. Silence without it. */
  sound?: AnalyserNode;
}

const MATRICES: Record<string, number> = { bt709: 0, smpte170m: 1, bt470bg: 1, "bt2020-ncl": 2 };
const FORMATS: Record<string, string> = { NV12: "nv12", I420: "i420" };

/** The result of a run. It can be read or drawn until the chain runs again. */
export class Result {
  constructor(
    private readonly chain: Chain,
    private readonly run: number,
    readonly width: number,
    readonly height: number,
    readonly channels: number,
    readonly dtype: "u8" | "f32",
  ) {}

  private instance(): Instance {
    return this.chain.current(this.run);
  }

  /** The numbers as they are: bytes, or f32. */
  async read(): Promise<Uint8Array | Float32Array> {
    const count = this.width * this.height * this.channels;
    const bytes = await this.instance().read(count * (this.dtype === "f32" ? 4 : 1));
    return this.dtype === "f32" ? new Float32Array(bytes) : new Uint8Array(bytes);
  }

  /** The picture as RGBA bytes, alpha not premultiplied. */
  async pixels(): Promise<Uint8ClampedArray<ArrayBuffer>> {
    const found = await this.read();
    const size = this.width * this.height;
    const made = new Uint8ClampedArray(size * 4).fill(255);
    const unit = this.dtype === "f32" ? 255 : 1;
    const n = this.channels;
    for (let i = 0; i < size; i++) {
      for (let c = 0; c < Math.max(n, 3); c++) {
        made[4 * i + c] = Math.floor(found[n * i + (n === 1 ? 0 : c)]! * unit + 0.5);
      }
    }
    return made;
  }

  async imageData(): Promise<ImageData> {
    return new ImageData(await this.pixels(), this.width, this.height);
  }

  /** Show the result on a canvas, which gets its size. */
  draw(canvas: HTMLCanvasElement | OffscreenCanvas): void {
    this.instance().draw(canvas, this.width, this.height, this.channels, this.dtype);
  }
}

export class Chain {
  readonly document: ChainDocument;
  /** The parameters that can be changed. */
  readonly controls: Control[];
  private gpu?: Gpu;
  private instance?: Instance;
  private runs = 0;
  /** The number of the last frame. */
  private frame = -1;
  private closed = false;

  private constructor(private readonly loaded: LoadedDocument) {
    this.document = loaded.document;
    this.controls = loaded.document.controls.filter((c) => !c.why);
  }

  /** Load a chain: the address of a chain.json, the `#id` of a script element, or the object. */
  static async load(source: string | URL | ChainDocument): Promise<Chain> {
    const loaded = await loadDocument(source);
    const chain = new Chain(loaded);
    await chain.open();
    return chain;
  }

  /** The address of a file beside the document. */
  url(name: string): string {
    return new URL(name, this.loaded.base || undefined).href;
  }

  /** The device; a new one after the last was lost. */
  private async open(): Promise<Gpu> {
    if (this.closed) throw new Error("dala: the chain was closed");
    if (this.gpu && !this.gpu.lost) return this.gpu;
    this.instance = undefined;
    try {
      this.gpu = await sharedGpu();
    } catch (error) {
      forgetGpu();
      throw error;
    }
    return this.gpu;
  }

  /** Whether the device was lost; the next run opens another. */
  get lost(): boolean {
    return this.gpu?.lost === true;
  }

  /** Whether frames differ though nothing is changed: by time, or by what programs remember. */
  get animated(): boolean {
    const { roles = [], plans } = this.document;
    return roles.some((r) => r !== "pointer") || Object.values(plans).some((p) => p.some((q) => q.swaps?.length));
  }

  /**
   * Run the chain on a picture; parameters that are not given have their exported values. A chain
   * that draws by itself takes a size: `{width, height}`.
   */
  async run(source: Source, params: Params = {}, options: RunOptions = {}): Promise<Result> {
    if (this.closed) throw new Error("dala: the chain was closed");
    const gpu = this.gpu && !this.gpu.lost ? this.gpu : await this.open();
    gpu.check();
    let given: External | RawPicture | Size = isEncoded(source) ? await decoded(source) : source;
    const own = given !== source ? (given as ImageBitmap) : undefined;
    let [width, height] = sizeOf(given);
    if (!(width > 0 && height > 0)) throw new Error("dala: the picture has no pixels yet");
    const numbers = this.numbers(params, width, height);
    const frame = options.frame ?? this.frame + 1;
    this.moment(numbers, options);
    try {
      const size = this.document.size;
      let fitted: ImageBitmap | undefined;
      if (size && (size[0] !== width || size[1] !== height)) {
        if (!options.fit) {
          throw new Error(
            `dala: the chain takes pictures of ${size[0]} x ${size[1]}, got ${width} x ${height}. ` +
              "Scale the picture, or pass {fit: true}.",
          );
        }
        if (!isSize(given)) given = fitted = await scaled(given, size[0], size[1]);
        [width, height] = size;
        numbers.set("w", width).set("h", height);
      }
      if (!size && options.fit) {
        const near = this.nearest(numbers);
        if (near[0] !== width || near[1] !== height) {
          if (!isSize(given)) given = fitted = await scaled(given, near[0], near[1]);
          [width, height] = near;
        }
      }
      const planes = options.yuv && isVideoFrame(given) ? await this.planes(given, numbers) : undefined;
      const format = planes?.format ?? "rgba";
      const plan = this.plan(numbers, format);
      let instance = this.instance;
      if (!instance?.fits(gpu, plan, numbers)) instance = await this.fresh(gpu, plan);
      if (this.document.roles?.includes("frame")) numbers.set("frame", instance.since(frame));
      instance.set(numbers);
      instance.turn(frame);
      if (options.sound) instance.hear(options.sound);
      this.frame = frame;
      if (isSize(given)) void 0; // the chain draws by itself
      else if (planes) instance.write(planes.data);
      else if (isRaw(given)) instance.write(checked(given));
      else instance.copy(given, width, height);
      instance.run();
      fitted?.close();
      const [rows, columns, channels] = plan.shape.map((e) => evaluate(e, numbers));
      return new Result(this, ++this.runs, columns!, rows!, channels ?? 1, plan.dtype);
    } finally {
      own?.close();
    }
  }

  /** Run the chain and show the result on a canvas. */
  async draw(
    source: Source,
    canvas: HTMLCanvasElement | OffscreenCanvas,
    params: Params = {},
    options: RunOptions = {},
  ): Promise<Result> {
    const result = await this.run(source, params, options);
    result.draw(canvas);
    return result;
  }

  /** Set what kernels are given of this moment, where they ask for it. */
  private moment(numbers: Numbers, options: RunOptions): void {
    const roles = this.document.roles ?? [];
    if (roles.includes("time")) numbers.set("time", options.time ?? 0);
    if (roles.includes("pointer")) {
      const [x, y, pressed] = options.pointer ?? [0, 0, 0];
      numbers.set("pointer.x", x).set("pointer.y", y).set("pointer.pressed", pressed);
    }
    if (roles.includes("date")) {
      const now = new Date();
      const seconds = (now.getHours() * 60 + now.getMinutes()) * 60 + now.getSeconds() + now.getMilliseconds() / 1000;
      numbers.set("date.year", now.getFullYear()).set("date.month", now.getMonth() + 1);
      numbers.set("date.day", now.getDate()).set("date.seconds", seconds);
    }
  }

  /** Release the chain's memory on the GPU. */
  close(): void {
    this.instance?.destroy();
    this.instance = undefined;
    this.closed = true;
  }

  /** @internal The instance of a run; raises if the chain has run since. */
  current(run: number): Instance {
    if (run !== this.runs || !this.instance) {
      throw new Error("dala: the chain has run again since; read or draw a result before that");
    }
    if (this.gpu?.lost) throw new Error("dala: the GPU was lost; run the chain again");
    return this.instance;
  }

  /** Numbers of all symbols for parameters by name. */
  private numbers(params: Params, width: number, height: number): Numbers {
    const numbers: Numbers = new Map([["w", width], ["h", height], ["matrix", 0], ["full", 0]]);
    for (const s of ["time", "frame", "pointer.x", "pointer.y", "pointer.pressed"]) numbers.set(s, 0);
    for (const s of ["year", "month", "day", "seconds"]) numbers.set(`date.${s}`, 0);
    for (const c of this.document.controls) c.symbols.forEach((s, i) => numbers.set(s, c.values[i]!));
    for (const [name, value] of Object.entries(params)) {
      const c = this.document.controls.find((o) => o.name === name || `${o.filter}.${o.param}` === name);
      if (!c) {
        const known = this.controls.map((o) => o.name).join(", ") || "none";
        throw new Error(`dala: no parameter ${name}. The chain has: ${known}`);
      }
      if (c.why && JSON.stringify(value) !== JSON.stringify(shown(c, c.values))) {
        throw new Error(`dala: ${name} cannot be changed: ${c.why}`);
      }
      if (!c.why) asNumbers(c, value).forEach((n, i) => numbers.set(c.symbols[i]!, n));
    }
    return numbers;
  }

  private find(numbers: Numbers, format: string): Plan | undefined {
    return (this.document.plans[format] ?? []).find((plan) =>
      plan.when.some((guards) => guards.every((g) => holds(g, numbers))),
    );
  }

  /** The nearest size with a plan; `numbers` get it. Few sizes are not their own nearest. */
  private nearest(numbers: Numbers): [number, number] {
    const [w, h] = [numbers.get("w")!, numbers.get("h")!];
    const least = Math.min(1, Math.sqrt(2 ** 25 / (w * h))); // four bytes a pixel in 128 MiB
    for (let d = 0; d < 12; d++) {
      for (const [dx, dy] of d ? [[d, 0], [0, d], [d, d]] : [[0, 0]]) {
        const near: [number, number] = [
          Math.max(Math.floor(w * least) - dx!, 1),
          Math.max(Math.floor(h * least) - dy!, 1),
        ];
        numbers.set("w", near[0]).set("h", near[1]);
        if (this.find(numbers, "rgba")) return near;
      }
    }
    numbers.set("w", w).set("h", h);
    return [w, h];
  }

  private plan(numbers: Numbers, format: string): Plan {
    const found = this.find(numbers, format);
    if (found) return found;
    const given = [...numbers].map(([name, n]) => `${name} = ${n}`).join(", ");
    throw new Error(`dala: the chain was not exported for this size or these parameters (${given})`);
  }

  /** The present instance, or a new one; only the latter waits, for its shaders. */
  private async fresh(gpu: Gpu, plan: Plan): Promise<Instance> {
    const made = await Instance.of(gpu, plan, this.loaded);
    if (this.closed) throw new Error("dala: the chain was closed");
    this.instance?.destroy();
    return (this.instance = made);
  }

  /** Copy the planes of a video frame, and set the symbols of its matrix and range. */
  private async planes(
    frame: VideoFrame,
    numbers: Numbers,
  ): Promise<{ data: Uint8Array; format: string } | undefined> {
    const format = FORMATS[frame.format ?? ""];
    const matrix = MATRICES[frame.colorSpace.matrix ?? "bt709"];
    const rect = frame.visibleRect;
    if (!format || !this.document.plans[format]?.length || matrix === undefined || !rect) return undefined;
    const { width, height } = rect;
    if (width % 2 || height % 2 || width !== frame.displayWidth || height !== frame.displayHeight) {
      return undefined;
    }
    const size = width * height;
    const data = new Uint8Array((size * 3) / 2);
    const layout: PlaneLayout[] =
      format === "nv12"
        ? [{ offset: 0, stride: width }, { offset: size, stride: width }]
        : [
            { offset: 0, stride: width },
            { offset: size, stride: width / 2 },
            { offset: size * 1.25, stride: width / 2 },
          ];
    await frame.copyTo(data, { layout });
    numbers.set("matrix", matrix).set("full", frame.colorSpace.fullRange ? 1 : 0);
    return { data, format };
  }
}

function checked({ data, width, height }: RawPicture): Uint8Array {
  if (data.length !== width * height * 4) {
    throw new Error(`dala: a picture of ${width} x ${height} has ${width * height * 4} bytes, got ${data.length}`);
  }
  return new Uint8Array(data.buffer, data.byteOffset, data.length);
}

/** The value of a control as pages show it. */
export function shown(c: Control, numbers: number[]): Params[string] {
  if (c.type === "choice") return c.choices![numbers[0]!]!;
  if (c.type === "bool") return numbers[0] === 1;
  return c.symbols.length === 1 ? numbers[0]! : numbers;
}

function asNumbers(c: Control, value: Params[string]): number[] {
  const refuse = (expected: string) => new Error(`dala: ${c.name} must be ${expected}, got ${JSON.stringify(value)}`);
  if (c.type === "choice") {
    const index = c.choices!.indexOf(String(value));
    if (index < 0) throw refuse(`one of ${c.choices!.join(", ")}`);
    return [index];
  }
  if (c.type === "bool") return [value ? 1 : 0];
  let numbers = Array.isArray(value) ? value : [value];
  if (numbers.length === 1 && c.symbols.length > 1) numbers = c.symbols.map(() => numbers[0]!);
  const whole = c.type === "int" || c.type === "ints";
  const fits = numbers.every((n) => typeof n === "number" && Number.isFinite(n) && (!whole || n % 1 === 0));
  if (!fits || numbers.length !== c.symbols.length) {
    throw refuse(c.symbols.length > 1 ? `${c.symbols.length} numbers` : whole ? "an integer" : "a number");
  }
  return numbers as number[];
}
