// Pictures from bytes: H.264 through WebCodecs, JPEG, or raw pixels. The newest picture wins.
import type { PictureHeader } from "../types";

export interface Shown {
  image: CanvasImageSource & { close?: () => void };
  header: PictureHeader;
}

type Which = PictureHeader["which"];

interface Line {
  decoder: VideoDecoder | null;
  /** Codec and size that the decoder was configured for. */
  shape: string;
  /** Headers of pictures that are inside the decoder, by sequence number. */
  inside: Map<number, PictureHeader>;
  needsKey: boolean;
}

/** Failures of decoding without a picture between them, after which pictures come as JPEG. */
const MOST_FAILURES = 2;

export class Player {
  shown: { after: Shown | null; before: Shown | null } = { after: null, before: null };
  frames = 0;
  onFrame: () => void = () => {};
  onTime: (time: number) => void = () => {};
  onFallback: () => void = () => {};
  /** A decoder was lost: the next picture has to stand alone. */
  onLost: () => void = () => {};
  private broken = false;
  private failures = 0;
  private tab: string | null = null;
  private generation = 0;
  private lines: { [which in Which]: Line } = { after: line(), before: line() };

  constructor(private readonly acknowledge: (sequence: number) => void) {}

  /** The codec to ask for. WebCodecs exists in secure contexts only. */
  codec(h264: boolean): "h264" | "jpeg" {
    return h264 && !this.broken && typeof VideoDecoder !== "undefined" ? "h264" : "jpeg";
  }

  /** Forget everything: a new connection begins new streams. */
  reset(): void {
    this.restart();
    this.clear(null);
  }

  /** Begin new streams; what is shown stays. */
  private restart(): void {
    this.generation++;
    for (const which of ["after", "before"] as const) {
      close(this.lines[which]);
      this.lines[which] = line();
    }
  }

  /** Show pictures of another tab from now on. Streams go on: two tabs of one size share them. */
  clear(tab: string | null): void {
    this.tab = tab;
    for (const which of ["after", "before"] as const) {
      if (this.shown[which]?.header.tab !== tab) this.drop(which);
    }
    this.onFrame();
  }

  drop(which: Which): void {
    this.shown[which]?.image.close?.();
    this.shown[which] = null;
  }

  take(header: PictureHeader, payload: Uint8Array<ArrayBuffer>): void {
    if (header.codec.startsWith("avc1")) this.decode(header, payload);
    else void this.still(header, payload);
  }

  private async still(header: PictureHeader, payload: Uint8Array<ArrayBuffer>): Promise<void> {
    const generation = this.generation;
    let image: ImageBitmap;
    try {
      image =
        header.codec === "jpeg"
          ? await createImageBitmap(new Blob([payload], { type: "image/jpeg" }))
          : await createImageBitmap(
              new ImageData(new Uint8ClampedArray(payload), header.width, header.height),
            );
    } catch {
      this.seen(header);
      return;
    }
    this.seen(header);
    if (generation === this.generation) this.show(image, header);
    else image.close();
  }

  private decode(header: PictureHeader, payload: Uint8Array<ArrayBuffer>): void {
    const at = this.lines[header.which];
    const shape = `${header.codec} ${header.width} ${header.height}`;
    if (at.decoder === null || at.shape !== shape || at.decoder.state === "closed") {
      close(at);
      at.shape = shape;
      at.needsKey = true;
      const generation = this.generation;
      at.decoder = new VideoDecoder({
        output: (frame) => {
          const own = at.inside.get(frame.timestamp);
          at.inside.delete(frame.timestamp);
          if (own === undefined || generation !== this.generation) {
            frame.close();
            return;
          }
          this.failures = 0;
          this.seen(own);
          this.show(frame, own);
        },
        error: () => {
          if (generation === this.generation) this.fail();
        },
      });
      at.decoder.configure({
        codec: header.codec,
        codedWidth: header.width,
        codedHeight: header.height,
        optimizeForLatency: true,
      });
    }
    if (at.needsKey && !header.key) {
      this.seen(header);
      return;
    }
    at.needsKey = false;
    at.inside.set(header.seq, header);
    try {
      at.decoder.decode(
        new EncodedVideoChunk({ type: header.key ? "key" : "delta", timestamp: header.seq, data: payload }),
      );
    } catch {
      this.fail();
    }
  }

  /** A moment is taken when its result is; the original comes before it. */
  private seen(header: PictureHeader): void {
    if (header.which === "after") this.acknowledge(header.seq);
  }

  /** Browsers take decoders back, as from pages that were hidden for long: begin anew with a key
   * picture. A decoder that never gives a picture is left for JPEG. */
  private fail(): void {
    if (this.broken) return;
    const inside = [...this.lines.after.inside.values()];
    this.restart();
    this.broken = ++this.failures >= MOST_FAILURES;
    for (const header of inside) this.seen(header); // they will not come out, and others wait for them
    if (this.broken) this.onFallback();
    else this.onLost();
  }

  private show(image: Shown["image"], header: PictureHeader): void {
    const old = this.shown[header.which];
    if ((this.tab !== null && header.tab !== this.tab) || (old && old.header.seq > header.seq)) {
      image.close?.();
      return;
    }
    old?.image.close?.();
    this.shown[header.which] = { image, header };
    if (header.which === "after") {
      this.frames++;
      this.onTime(header.time);
    }
    this.onFrame();
  }
}

function line(): Line {
  return { decoder: null, shape: "", inside: new Map(), needsKey: true };
}

function close(at: Line): void {
  if (at.decoder && at.decoder.state !== "closed") at.decoder.close();
  at.decoder = null;
  at.inside.clear();
}
