// One device for all chains of a page, and what chains share on it.

/** Raised where a browser has no WebGPU; the message says what to do. */
export class Unsupported extends Error {
  override name = "Unsupported";
}

/** How to turn WebGPU on in this browser. */
function advice(): string {
  const agent = globalThis.navigator?.userAgent ?? "";
  if (agent.includes("Firefox/")) {
    return "Firefox has it from 141 on Windows and 145 on macOS; elsewhere open about:config, and set dom.webgpu.enabled to true.";
  }
  if (!agent.includes("Chrome/") && agent.includes("Safari/")) {
    return "Safari has it from 26; before, turn it on in Settings, Feature Flags.";
  }
  if (agent.includes("Linux") && !agent.includes("Android")) {
    return "Chrome on Linux: open chrome://flags/#enable-unsafe-webgpu, choose Enabled, and restart it.";
  }
  return "Chrome and Edge have it from 113, on Android from 121: update the browser, or open the page in one of them.";
}

const UPLOAD = `
@group(0) @binding(0) var picture: texture_2d<f32>;
@group(0) @binding(1) var<storage, read_write> pixels: array<u32>;
@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) at: vec3<u32>) {
    let size = textureDimensions(picture);
    if (at.x >= size.x || at.y >= size.y) { return; }
    let bytes = vec4<u32>(textureLoad(picture, at.xy, 0) * 255.0 + 0.5);
    pixels[at.y * size.x + at.x] = bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
}`;

// Formats of results: u8 with four channels are words, others are bytes or floats.
const SHOW = `
struct Format { width: u32, height: u32, channels: u32, floats: u32 }
@group(0) @binding(0) var<storage, read> pixels: array<u32>;
@group(0) @binding(1) var<uniform> format: Format;
@vertex fn corner(@builtin(vertex_index) i: u32) -> @builtin(position) vec4<f32> {
    return vec4<f32>(f32(i & 1u) * 4.0 - 1.0, f32(i >> 1u) * 4.0 - 1.0, 0.0, 1.0);
}
fn number(i: u32) -> f32 {
    if (format.floats == 1u) { return clamp(bitcast<f32>(pixels[i]), 0.0, 1.0); }
    return f32((pixels[i / 4u] >> (i % 4u * 8u)) & 255u) / 255.0;
}
@fragment fn main(@builtin(position) at: vec4<f32>) -> @location(0) vec4<f32> {
    let x = min(u32(at.x), format.width - 1u);
    let y = min(u32(at.y), format.height - 1u);
    let i = (y * format.width + x) * format.channels;
    if (format.channels == 1u) { return vec4<f32>(vec3<f32>(number(i)), 1.0); }
    let color = vec3<f32>(number(i), number(i + 1u), number(i + 2u));
    if (format.channels == 3u) { return vec4<f32>(color, 1.0); }
    let alpha = number(i + 3u);
    return vec4<f32>(color * alpha, alpha);
}`;

/** A device, with the pipelines that bring pictures in and show results. */
export class Gpu {
  lost = false;
  /** What a device reported outside of any call: too little memory, for example. */
  private problem = "";
  readonly upload: GPUComputePipeline;
  /** Compiled shaders by their text. */
  readonly pipelines = new Map<string, Promise<GPUComputePipeline>>();
  private readonly shows = new Map<string, GPURenderPipeline>();
  private readonly layouts = new Map<number, GPUBindGroupLayout>();

  private constructor(readonly device: GPUDevice) {
    this.upload = device.createComputePipeline({
      layout: "auto",
      compute: { module: device.createShaderModule({ code: UPLOAD }), entryPoint: "main" },
    });
    void device.lost.then(() => {
      this.lost = true;
    });
    device.addEventListener("uncapturederror", (event) => {
      this.problem ||= event.error.message;
    });
  }

  /** Raise what the device reported since the last check. */
  check(): void {
    const problem = this.problem;
    this.problem = "";
    if (problem) throw new Error(`dala: the GPU reported: ${problem}`);
  }

  static async open(): Promise<Gpu> {
    const gpu = globalThis.navigator?.gpu;
    if (!gpu) {
      const secure = globalThis.isSecureContext !== false;
      throw new Unsupported(
        secure
          ? `This browser has no WebGPU, or it is off. ${advice()}`
          : "Browsers offer WebGPU only to secure pages: https, or localhost.",
      );
    }
    const adapter = await gpu.requestAdapter();
    if (!adapter) {
      throw new Unsupported(
        "This browser has WebGPU, but found no GPU for it. Turn on graphics acceleration in its settings, and " +
          "restart it; chrome://gpu or about:support says why a GPU is refused.",
      );
    }
    return new Gpu(await adapter.requestDevice());
  }

  /** The layout of a dispatch: its inputs, its output and a uniform block. */
  layout(inputs: number): GPUBindGroupLayout {
    let found = this.layouts.get(inputs);
    if (!found) {
      const types: GPUBufferBindingType[] = [
        ...new Array<GPUBufferBindingType>(inputs).fill("read-only-storage"),
        "storage",
        "uniform",
      ];
      found = this.device.createBindGroupLayout({
        entries: types.map((type, binding) => ({
          binding,
          visibility: GPUShaderStage.COMPUTE,
          buffer: { type },
        })),
      });
      this.layouts.set(inputs, found);
    }
    return found;
  }

  /** Compile a shader, once; a browser does so beside the page. */
  pipeline(code: string, inputs: number): Promise<GPUComputePipeline> {
    let found = this.pipelines.get(code);
    if (!found) {
      const { device } = this;
      found = device.createComputePipelineAsync({
        layout: device.createPipelineLayout({ bindGroupLayouts: [this.layout(inputs)] }),
        compute: { module: device.createShaderModule({ code }), entryPoint: "main" },
      });
      if (this.pipelines.size >= 256) this.pipelines.clear();
      this.pipelines.set(code, found);
      found.catch(() => this.pipelines.delete(code));
    }
    return found;
  }

  show(format: GPUTextureFormat): GPURenderPipeline {
    let found = this.shows.get(format);
    if (!found) {
      const module = this.device.createShaderModule({ code: SHOW });
      found = this.device.createRenderPipeline({
        layout: "auto",
        vertex: { module, entryPoint: "corner" },
        fragment: { module, entryPoint: "main", targets: [{ format }] },
      });
      this.shows.set(format, found);
    }
    return found;
  }
}

let shared: Promise<Gpu> | undefined;

/** The device of this page; a new one if the last one was lost. */
export async function sharedGpu(): Promise<Gpu> {
  const gpu = await (shared ??= Gpu.open());
  if (!gpu.lost) return gpu;
  shared = Gpu.open();
  return shared;
}

/** Forget a device that could not be opened, so that the next call tries again. */
export function forgetGpu(): void {
  shared = undefined;
}
