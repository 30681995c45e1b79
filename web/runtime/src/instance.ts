// A plan on a device, for pictures of one size: its buffers, bind groups and uniform blocks.

import { type LoadedDocument, type Plan, bytesOf } from "./document.js";
import { type Numbers, evaluate, table } from "./expressions.js";
import type { Gpu } from "./gpu.js";
import type { External } from "./pictures.js";
import { heard } from "./sound.js";

const ALIGN = 256;
const MOST_GROUPS = 65535;

interface Step {
  pipeline?: GPUComputePipeline;
  /** Bind groups of even and of odd frames; one where nothing is remembered. */
  bound: GPUBindGroup[];
  groups: number;
  copy?: [number, number];
}

const sizesOf = (plan: Plan, numbers: Numbers) =>
  plan.buffers.map((b) => Math.max(Math.ceil(evaluate(b.bytes, numbers) / 16) * 16, 16));

export class Instance {
  private sizes: number[] = [];
  private buffers: GPUBuffer[] = [];
  private steps: Step[] = [];
  private uniform?: GPUBuffer;
  private blocks: Uint8Array<ArrayBuffer>[] = [];
  private offsets: number[] = [];
  private texture?: GPUTexture;
  private format?: GPUBuffer;
  private upload?: GPUBindGroup;
  private show?: { pipeline: GPURenderPipeline; group: GPUBindGroup; key: string };
  private last = "";
  /** Whether pairs of buffers have changed places. */
  private odd = 0;
  /** The numbers of the first frame and of the last; -1 before it. */
  private first = 0;
  private frame = -1;
  private readonly input: number;
  private readonly output: number;

  private constructor(
    private readonly gpu: Gpu,
    private readonly plan: Plan,
    private readonly loaded: LoadedDocument,
    private readonly pipelines: (GPUComputePipeline | undefined)[],
  ) {
    this.input = plan.buffers.findIndex((b) => b.role === "input");
    this.output = plan.buffers.findIndex((b) => b.role === "output");
  }

  /** Compile the shaders of a plan. */
  static async of(gpu: Gpu, plan: Plan, loaded: LoadedDocument): Promise<Instance> {
    const pipelines = await Promise.all(
      plan.steps.map((step) =>
        step.copy ? undefined : gpu.pipeline(loaded.shaders[step.shader]!, step.buffers.length - 1),
      ),
    );
    return new Instance(gpu, plan, loaded, pipelines);
  }

  /** Whether the buffers fit other numbers. */
  fits(gpu: Gpu, plan: Plan, numbers: Numbers): boolean {
    if (gpu !== this.gpu || plan !== this.plan || gpu.lost) return false;
    const sizes = sizesOf(plan, numbers);
    return sizes.every((n, i) => n === this.sizes[i]);
  }

  /** Set the numbers of all symbols. */
  set(numbers: Numbers): void {
    const key = [...numbers.values()].join(" ");
    if (key === this.last) return;
    if (!this.buffers.length) this.allocate(numbers);
    const { device } = this.gpu;
    this.plan.buffers.forEach((b, i) => {
      if (b.table !== undefined) {
        device.queue.writeBuffer(this.buffers[i]!, 0, table(b.table, numbers) as Uint32Array<ArrayBuffer>);
      }
    });
    this.plan.steps.forEach((step, i) => {
      if (step.copy) return;
      const block = this.blocks[i]!;
      const view = new DataView(block.buffer);
      for (const [at, kind, e] of step.set ?? []) {
        const n = evaluate(e, numbers);
        if (kind === "f") view.setFloat32(at, n, true);
        else view.setUint32(at, n < 0 ? n + 2 ** 32 : n % 2 ** 32, true);
      }
      device.queue.writeBuffer(this.uniform!, this.offsets[i]!, block);
      this.steps[i]!.groups = evaluate(step.groups, numbers);
    });
    this.last = key;
  }

  /** The number of a frame, counted from the first one that is remembered. */
  since(frame: number): number {
    if (!this.plan.swaps?.length) return frame;
    return this.frame < 0 || frame < this.frame ? 0 : frame - this.first;
  }

  /** Turn to a frame: the same one again, a later one, or the first after a step back. */
  turn(frame: number): void {
    const swaps = this.plan.swaps ?? [];
    if (this.frame < 0 || frame < this.frame) this.first = frame;
    if (this.frame >= 0 && frame > this.frame && swaps.length) this.odd = 1 - this.odd;
    if (frame < this.frame && swaps.length) {
      const encoder = this.gpu.device.createCommandEncoder();
      for (const [, before] of swaps) encoder.clearBuffer(this.buffers[this.place(before, this.odd)]!);
      this.gpu.device.queue.submit([encoder.finish()]);
    }
    this.frame = frame;
  }

  /** Where a buffer of the plan is in frames with this parity. */
  private place(buffer: number, odd: number): number {
    const pair = odd ? this.plan.swaps?.find((p) => p.includes(buffer)) : undefined;
    return pair ? pair[0] + pair[1] - buffer : buffer;
  }

  private allocate(numbers: Numbers): void {
    const { device } = this.gpu;
    this.sizes = sizesOf(this.plan, numbers);
    const most = device.limits.maxStorageBufferBindingSize;
    const large = Math.max(...this.sizes);
    if (large > most) {
      throw new Error(`dala: the picture needs ${large} bytes, but this GPU allows ${most}. Use a smaller one.`);
    }
    this.buffers = this.sizes.map((size, i) => {
      const buffer = device.createBuffer({
        size,
        usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST,
      });
      const { data } = this.plan.buffers[i]!;
      if (data !== undefined) {
        const content = this.loaded.data[data]!;
        const padded = new Uint8Array(Math.ceil(content.length / 4) * 4);
        padded.set(content);
        device.queue.writeBuffer(buffer, 0, padded);
      }
      return buffer;
    });
    let total = 0;
    for (const step of this.plan.steps) {
      const block = step.copy ? new Uint8Array(0) : bytesOf(step.block);
      const padded = new Uint8Array(Math.max(Math.ceil(block.length / 16) * 16, 16));
      padded.set(block);
      this.blocks.push(padded);
      this.offsets.push(total);
      total += Math.ceil(padded.length / ALIGN) * ALIGN;
    }
    this.uniform = device.createBuffer({
      size: Math.max(total, ALIGN),
      usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST,
    });
    this.steps = this.plan.steps.map((step, i) => {
      if (step.copy) return { groups: 0, bound: [], copy: step.copy };
      const inputs = step.buffers.length - 1;
      const size = Math.ceil(this.blocks[i]!.length / ALIGN) * ALIGN;
      const uniform: GPUBindingResource = { buffer: this.uniform!, offset: this.offsets[i]!, size };
      const bound = (this.plan.swaps?.length ? [0, 1] : [0]).map((odd) => {
        const buffers = step.buffers.map((b) => ({ buffer: this.buffers[this.place(b, odd)]! }));
        return device.createBindGroup({
          layout: this.gpu.layout(inputs),
          entries: [...buffers, uniform].map((resource, binding) => ({ binding, resource })),
        });
      });
      return { groups: 0, pipeline: this.pipelines[i], bound };
    });
  }

  /** Write the pictures of sound that kernels read. */
  hear(sound: AnalyserNode): void {
    this.plan.buffers.forEach(({ role }, i) => {
      if (!role?.includes(" ")) return;
      this.gpu.device.queue.writeBuffer(this.buffers[i]!, 0, heard(role, sound));
    });
  }

  /** Write the picture's bytes. */
  write(data: Uint8Array): void {
    const target = this.buffers[this.input]!;
    const whole = data.length - (data.length % 4);
    const { queue } = this.gpu.device;
    queue.writeBuffer(target, 0, data as Uint8Array<ArrayBuffer>, 0, whole);
    if (whole < data.length) {
      const rest = new Uint8Array(4);
      rest.set(data.subarray(whole));
      queue.writeBuffer(target, whole, rest);
    }
  }

  /** Copy a picture of the browser's, as sRGB and with straight alpha. */
  copy(source: External, width: number, height: number): void {
    const { device } = this.gpu;
    if (this.texture?.width !== width || this.texture.height !== height) {
      this.texture?.destroy();
      this.texture = device.createTexture({
        size: [width, height],
        format: "rgba8unorm",
        usage: GPUTextureUsage.TEXTURE_BINDING | GPUTextureUsage.COPY_DST | GPUTextureUsage.RENDER_ATTACHMENT,
      });
      this.upload = device.createBindGroup({
        layout: this.gpu.upload.getBindGroupLayout(0),
        entries: [
          { binding: 0, resource: this.texture.createView() },
          { binding: 1, resource: { buffer: this.buffers[this.input]! } },
        ],
      });
    }
    device.queue.copyExternalImageToTexture(
      { source },
      { texture: this.texture, colorSpace: "srgb", premultipliedAlpha: false },
      [width, height],
    );
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(this.gpu.upload);
    pass.setBindGroup(0, this.upload!);
    pass.dispatchWorkgroups(Math.ceil(width / 16), Math.ceil(height / 16));
    pass.end();
    device.queue.submit([encoder.finish()]);
  }

  run(): void {
    const { device } = this.gpu;
    const encoder = device.createCommandEncoder();
    let pass: GPUComputePassEncoder | undefined;
    for (const step of this.steps) {
      if (step.copy) {
        pass?.end();
        pass = undefined;
        const [from, to] = step.copy.map((b) => this.place(b, this.odd)) as [number, number];
        encoder.copyBufferToBuffer(this.buffers[from]!, 0, this.buffers[to]!, 0, Math.min(this.sizes[from]!, this.sizes[to]!));
        continue;
      }
      pass ??= encoder.beginComputePass();
      pass.setPipeline(step.pipeline!);
      pass.setBindGroup(0, step.bound[this.odd]!);
      const rows = Math.ceil(step.groups / MOST_GROUPS);
      pass.dispatchWorkgroups(Math.ceil(step.groups / rows), rows);
    }
    pass?.end();
    device.queue.submit([encoder.finish()]);
  }

  async read(nbytes: number): Promise<ArrayBuffer> {
    const { device } = this.gpu;
    const size = Math.ceil(nbytes / 4) * 4;
    const staging = device.createBuffer({ size, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ });
    try {
      const encoder = device.createCommandEncoder();
      encoder.copyBufferToBuffer(this.buffers[this.output]!, 0, staging, 0, size);
      device.queue.submit([encoder.finish()]);
      await staging.mapAsync(GPUMapMode.READ);
      this.gpu.check();
      return staging.getMappedRange().slice(0, nbytes);
    } finally {
      staging.destroy();
    }
  }

  draw(
    canvas: HTMLCanvasElement | OffscreenCanvas,
    width: number,
    height: number,
    channels: number,
    dtype: "u8" | "f32",
  ): void {
    const { device } = this.gpu;
    if (canvas.width !== width) canvas.width = width;
    if (canvas.height !== height) canvas.height = height;
    const context = canvas.getContext("webgpu") as GPUCanvasContext | null;
    if (!context) throw new Error("dala: the canvas is in use by another kind of context");
    const format = navigator.gpu.getPreferredCanvasFormat();
    const known = context.getConfiguration?.();
    if (!known || known.device !== device) {
      context.configure({ device, format, alphaMode: "premultiplied", colorSpace: "srgb" });
    }
    const key = `${format} ${width} ${height}`;
    if (this.show?.key !== key) {
      const pipeline = this.gpu.show(format);
      this.format?.destroy();
      this.format = device.createBuffer({ size: 16, usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST });
      device.queue.writeBuffer(this.format, 0, new Uint32Array([width, height, channels, dtype === "f32" ? 1 : 0]));
      const group = device.createBindGroup({
        layout: pipeline.getBindGroupLayout(0),
        entries: [
          { binding: 0, resource: { buffer: this.buffers[this.output]! } },
          { binding: 1, resource: { buffer: this.format } },
        ],
      });
      this.show = { pipeline, group, key };
    }
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginRenderPass({
      colorAttachments: [
        { view: context.getCurrentTexture().createView(), loadOp: "clear", storeOp: "store", clearValue: [0, 0, 0, 0] },
      ],
    });
    pass.setPipeline(this.show.pipeline);
    pass.setBindGroup(0, this.show.group);
    pass.draw(3);
    pass.end();
    device.queue.submit([encoder.finish()]);
  }

  destroy(): void {
    for (const b of [...this.buffers, this.uniform, this.format]) b?.destroy();
    this.texture?.destroy();
    this.buffers = [];
    this.steps = [];
  }
}
