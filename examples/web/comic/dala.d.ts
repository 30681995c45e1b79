/// <reference types="@webgpu/types" />
// Types of the Dala runtime. Built from web/runtime.
type Expression = number | string | [string, ...Expression[]];
/** A comparison, its operands and its result. */
type Guard = ["==" | "<" | "<=", Expression, Expression, boolean];
/** The number of each symbol. */
type Numbers = Map<string, number>;
declare function evaluate(e: Expression, numbers: Numbers): number;
/** The words of a table that depends on symbols. */
declare function table(e: Expression, numbers: Numbers): Uint32Array;
declare function holds([kind, a, b, result]: Guard, numbers: Numbers): boolean;

/** A parameter of a chain. */
interface Control {
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
interface PlanBuffer {
    bytes: Expression;
    /** "input", "output", or a picture of sound and its width, such as "spectrum 256". */
    role?: string;
    table?: Expression;
    data?: number;
}
type PlanStep = {
    copy: [number, number];
} | {
    copy?: undefined;
    shader: number;
    buffers: number[];
    block: string;
    groups: Expression;
    set?: [number, "u" | "f", Expression][];
};
interface Plan {
    when: Guard[][];
    buffers: PlanBuffer[];
    steps: PlanStep[];
    shape: Expression[];
    dtype: "u8" | "f32";
    /** Pairs of buffers that change places after each frame. */
    swaps?: [number, number][];
}
interface ChainDocument {
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
    shaders: {
        file?: string;
        text?: string;
    }[];
    data: {
        file?: string;
        base64?: string;
    }[];
    plans: Record<string, Plan[]>;
    picture?: string;
    still?: string;
}
interface LoadedDocument {
    document: ChainDocument;
    shaders: string[];
    data: Uint8Array[];
    base: string;
}
declare function bytesOf(base64: string): Uint8Array;
/** Load a document by its address, by the `#id` of a script element, or as an object. */
declare function loadDocument(source: string | URL | ChainDocument): Promise<LoadedDocument>;

/** Pixels in memory: RGBA, four bytes each, alpha not premultiplied. */
interface RawPicture {
    data: Uint8Array | Uint8ClampedArray;
    width: number;
    height: number;
}
/** The size of a result, for chains that draw by themselves. */
interface Size {
    width: number;
    height: number;
}
type Source = Size | RawPicture | ImageData | ImageBitmap | HTMLImageElement | HTMLVideoElement | HTMLCanvasElement | OffscreenCanvas | VideoFrame | Blob;
type External = ImageBitmap | HTMLVideoElement | HTMLCanvasElement | OffscreenCanvas | VideoFrame;
declare const isVideoFrame: (v: unknown) => v is VideoFrame;
declare function isRaw(source: Source): source is RawPicture;
declare function isSize(source: Source): source is Size;
declare function sizeOf(source: External | RawPicture | Size): [number, number];
/** Decode what has to be decoded. Alpha is not premultiplied, so that bytes stay as they are. */
declare function decoded(source: Blob | HTMLImageElement): Promise<ImageBitmap>;
/** Return true for what `decoded` takes. */
declare function isEncoded(source: Source): source is Blob | HTMLImageElement;
/** Scale a picture to a size, for chains that take one size only. */
declare function scaled(source: External | RawPicture, width: number, height: number): Promise<ImageBitmap>;

/** Parameters by name: numbers, lists of numbers, words of choices, true or false. */
type Params = Record<string, number | number[] | string | boolean>;
interface RunOptions {
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
/** The result of a run. It can be read or drawn until the chain runs again. */
declare class Result {
    private readonly chain;
    private readonly run;
    readonly width: number;
    readonly height: number;
    readonly channels: number;
    readonly dtype: "u8" | "f32";
    constructor(chain: Chain, run: number, width: number, height: number, channels: number, dtype: "u8" | "f32");
    private instance;
    /** The numbers as they are: bytes, or f32. */
    read(): Promise<Uint8Array | Float32Array>;
    /** The picture as RGBA bytes, alpha not premultiplied. */
    pixels(): Promise<Uint8ClampedArray<ArrayBuffer>>;
    imageData(): Promise<ImageData>;
    /** Show the result on a canvas, which gets its size. */
    draw(canvas: HTMLCanvasElement | OffscreenCanvas): void;
}
declare class Chain {
    private readonly loaded;
    readonly document: ChainDocument;
    /** The parameters that can be changed. */
    readonly controls: Control[];
    private gpu?;
    private instance?;
    private runs;
    /** The number of the last frame. */
    private frame;
    private closed;
    private constructor();
    /** Load a chain: the address of a chain.json, the `#id` of a script element, or the object. */
    static load(source: string | URL | ChainDocument): Promise<Chain>;
    /** The address of a file beside the document. */
    url(name: string): string;
    /** The device; a new one after the last was lost. */
    private open;
    /** Whether the device was lost; the next run opens another. */
    get lost(): boolean;
    /** Whether frames differ though nothing is changed: by time, or by what programs remember. */
    get animated(): boolean;
    /**
     * Run the chain on a picture; parameters that are not given have their exported values. A chain
     * that draws by itself takes a size: `{width, height}`.
     */
    run(source: Source, params?: Params, options?: RunOptions): Promise<Result>;
    /** Run the chain and show the result on a canvas. */
    draw(source: Source, canvas: HTMLCanvasElement | OffscreenCanvas, params?: Params, options?: RunOptions): Promise<Result>;
    /** Set what kernels are given of this moment, where they ask for it. */
    private moment;
    /** Release the chain's memory on the GPU. */
    close(): void;
    /** Numbers of all symbols for parameters by name. */
    private numbers;
    private find;
    /** The nearest size with a plan; `numbers` get it. Few sizes are not their own nearest. */
    private nearest;
    private plan;
    /** The present instance, or a new one; only the latter waits, for its shaders. */
    private fresh;
    /** Copy the planes of a video frame, and set the symbols of its matrix and range. */
    private planes;
}
/** The value of a control as pages show it. */
declare function shown(c: Control, numbers: number[]): Params[string];

declare class Clock {
    /** Seconds since the beginning. */
    time: number;
    /** The number of the frame. */
    frame: number;
    speed: number;
    /** Whether it runs; not at first where readers ask for less motion. */
    playing: boolean;
    private last;
    /** Go on to the frame of a moment, in milliseconds; a paused clock stays. */
    tick(now: number): void;
    /** Begin again at 0. */
    restart(): void;
}

interface MountOptions {
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
interface Mounted {
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
/** Show a chain inside an element. Resolves once its first picture is shown, or its still. */
declare function mount(element: HTMLElement, options: MountOptions): Promise<Mounted>;
declare const Base: typeof HTMLElement;
/** `<dala-chain src="chain.json" ui="full | sliders | none" picture="..." yuv fill>`. */
declare class DalaChain extends Base {
    private view;
    connectedCallback(): void;
    disconnectedCallback(): void;
    /** Resolves once the chain is loaded and its first picture is shown. */
    get ready(): Promise<Mounted | undefined>;
}

/** Raised where a browser has no WebGPU; the message says what to do. */
declare class Unsupported extends Error {
    name: string;
}
/** A device, with the pipelines that bring pictures in and show results. */
declare class Gpu {
    readonly device: GPUDevice;
    lost: boolean;
    /** What a device reported outside of any call: too little memory, for example. */
    private problem;
    readonly upload: GPUComputePipeline;
    /** Compiled shaders by their text. */
    readonly pipelines: Map<string, Promise<GPUComputePipeline>>;
    private readonly shows;
    private readonly layouts;
    private constructor();
    /** Raise what the device reported since the last check. */
    check(): void;
    static open(): Promise<Gpu>;
    /** The layout of a dispatch: its inputs, its output and a uniform block. */
    layout(inputs: number): GPUBindGroupLayout;
    /** Compile a shader, once; a browser does so beside the page. */
    pipeline(code: string, inputs: number): Promise<GPUComputePipeline>;
    show(format: GPUTextureFormat): GPURenderPipeline;
}
/** The device of this page; a new one if the last one was lost. */
declare function sharedGpu(): Promise<Gpu>;
/** Forget a device that could not be opened, so that the next call tries again. */
declare function forgetGpu(): void;

/** An analyser of the sound of a node, as chains take it. */
declare function analyser(node: AudioNode): AnalyserNode;
/** The picture that a role asks for, such as "spectrum 256", as RGBA bytes. */
declare function heard(role: string, sound: AnalyserNode): Uint8Array<ArrayBuffer>;

/** Load an exported chain. */
declare const load: typeof Chain.load;
declare const Dala: {
    load: typeof Chain.load;
    mount: typeof mount;
    Chain: typeof Chain;
    Result: typeof Result;
    Unsupported: typeof Unsupported;
    DalaChain: typeof DalaChain;
    analyser: typeof analyser;
};

export { Chain, Dala, DalaChain, Result, Unsupported, analyser, Dala as default, load, mount };
export type { ChainDocument, Control, MountOptions, Mounted, Params, RawPicture, RunOptions, Source };
