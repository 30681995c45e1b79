// Sound as pictures that shaders read: samples and spectra, as `dala.shaders.sound` has them.

/** The samples of a spectrum, and the magnitude of the loudest tone: half the mean of its window. */
const WINDOW = 2048;
const FULL = 0.21;

/** An analyser of the sound of a node, as chains take it. */
export function analyser(node: AudioNode): AnalyserNode {
  const { context } = node;
  const made = new AnalyserNode(context, { fftSize: WINDOW, smoothingTimeConstant: 0, minDecibels: -100, maxDecibels: -30 });
  node.connect(made);
  return made;
}

/** The picture that a role asks for, such as "spectrum 256", as RGBA bytes. */
export function heard(role: string, sound: AnalyserNode): Uint8Array<ArrayBuffer> {
  const [kind, count] = role.split(" ");
  const width = Number(count);
  if (kind === "toy") {
    const found = new Uint8Array(WINDOW / 2);
    sound.getByteFrequencyData(found);
    const made = new Uint8Array(width * 8);
    made.set(wave(sound, width));
    made.set(pixels(found.subarray(0, width)), width * 4);
    return made;
  }
  return kind === "wave" ? wave(sound, width) : spectrum(sound, width);
}

function wave(sound: AnalyserNode, width: number): Uint8Array<ArrayBuffer> {
  const samples = new Float32Array(WINDOW);
  sound.getFloatTimeDomainData(samples);
  const row = new Float32Array(width);
  for (let i = 0; i < width; i++) row[i] = Math.floor(128.5 + 128 * (samples[WINDOW - width + i] ?? 0));
  return pixels(row);
}

function spectrum(sound: AnalyserNode, width: number): Uint8Array<ArrayBuffer> {
  const levels = new Float32Array(WINDOW / 2);
  sound.getFloatFrequencyData(levels);
  const row = new Float32Array(width);
  for (let i = 0; i < width; i++) {
    const begin = Math.floor((i * levels.length) / width);
    const end = Math.max(Math.floor(((i + 1) * levels.length) / width), begin + 1);
    row[i] = (10 ** (Math.max(...levels.subarray(begin, end)) / 20) * 255) / FULL;
  }
  return pixels(row);
}

function pixels(row: ArrayLike<number>): Uint8Array<ArrayBuffer> {
  const made = new Uint8Array(row.length * 4);
  for (let i = 0; i < row.length; i++) {
    made.fill(Math.min(Math.max(row[i]!, 0), 255), 4 * i, 4 * i + 3);
    made[4 * i + 3] = 255;
  }
  return made;
}
