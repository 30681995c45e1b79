// Pictures as a page has them, and how they get to the GPU with their exact bytes.

/** Pixels in memory: RGBA, four bytes each, alpha not premultiplied. */
export interface RawPicture {
  data: Uint8Array | Uint8ClampedArray;
  width: number;
  height: number;
}

/** The size of a result, for chains that draw by themselves. */
export interface Size {
  width: number;
  height: number;
}

export type Source =
  | Size
  | RawPicture
  | ImageData
  | ImageBitmap
  | HTMLImageElement
  | HTMLVideoElement
  | HTMLCanvasElement
  | OffscreenCanvas
  | VideoFrame
  | Blob;

export type External = ImageBitmap | HTMLVideoElement | HTMLCanvasElement | OffscreenCanvas | VideoFrame;

const is = <T>(value: unknown, name: string): value is T => {
  const kind = (globalThis as Record<string, unknown>)[name];
  return typeof kind === "function" && value instanceof kind;
};

export const isVideoFrame = (v: unknown): v is VideoFrame => is(v, "VideoFrame");

export function isRaw(source: Source): source is RawPicture {
  return "data" in source && "width" in source;
}

export function isSize(source: Source): source is Size {
  return Object.getPrototypeOf(source) === Object.prototype && !("data" in source);
}

export function sizeOf(source: External | RawPicture | Size): [number, number] {
  if (isVideoFrame(source)) return [source.displayWidth, source.displayHeight];
  if (is<HTMLVideoElement>(source, "HTMLVideoElement")) return [source.videoWidth, source.videoHeight];
  return [source.width, source.height];
}

/** Decode what has to be decoded. Alpha is not premultiplied, so that bytes stay as they are. */
export async function decoded(source: Blob | HTMLImageElement): Promise<ImageBitmap> {
  if (is<HTMLImageElement>(source, "HTMLImageElement")) {
    await source.decode();
    return createImageBitmap(source, { premultiplyAlpha: "none" });
  }
  return createImageBitmap(source, { premultiplyAlpha: "none" });
}

/** Return true for what `decoded` takes. */
export function isEncoded(source: Source): source is Blob | HTMLImageElement {
  return is<Blob>(source, "Blob") || is<HTMLImageElement>(source, "HTMLImageElement");
}

/** Scale a picture to a size, for chains that take one size only. */
export async function scaled(
  source: External | RawPicture,
  width: number,
  height: number,
): Promise<ImageBitmap> {
  const options: ImageBitmapOptions = {
    resizeWidth: width,
    resizeHeight: height,
    resizeQuality: "high",
    premultiplyAlpha: "none",
  };
  if (isRaw(source)) {
    const data = new ImageData(new Uint8ClampedArray(source.data), source.width, source.height);
    return createImageBitmap(data, options);
  }
  return createImageBitmap(source, options);
}
