// Tables that plans compute from sizes and parameters, as the desktop does in f64:
// src/dala/gpu/compute/engines/sampling has the definitions.

const cached = new Map<string, unknown>();

/** Keep the last results: guards and blocks ask for the same table many times. */
function keep<T>(key: string, make: () => T): T {
  let found = cached.get(key) as T | undefined;
  if (found === undefined) {
    if (cached.size >= 64) cached.clear();
    found = make();
    cached.set(key, found);
  }
  return found;
}

/** Weights of a Gaussian at distances 0 to radius; all weights sum to 1. */
export function gauss(radius: number, sigma: number): Float64Array {
  return keep(`gauss ${radius} ${sigma}`, () => {
    const weights = new Float64Array(radius + 1);
    let sum = 0;
    for (let d = 0; d <= radius; d++) {
      weights[d] = Math.exp(-0.5 * (d / sigma) ** 2);
      sum += weights[d]! * (d ? 2 : 1);
    }
    return weights.map((w) => w / sum);
  });
}

/**
 * The same in 1 / 65536, for u8 pictures: all weights sum exactly to 65536. The largest remainders
 * are rounded up; the center is even and below 65536.
 */
export function gaussSteps(radius: number, sigma: number): Int32Array {
  return keep(`gauss steps ${radius} ${sigma}`, () => {
    const exact = Array.from(gauss(radius, sigma), (w, d) => w * (d ? 65536 : 32768));
    const steps = Int32Array.from(exact, Math.floor);
    const order = exact.map((_, d) => d).sort((a, b) => exact[b]! - steps[b]! - (exact[a]! - steps[a]!));
    const missing = 32768 - steps.reduce((sum, n) => sum + n, 0);
    for (const d of order.slice(0, missing)) steps[d]!++;
    if (steps[0] === 32768) steps.set([32767, 1].slice(0, steps.length));
    steps[0]! *= 2;
    return steps;
  });
}

/** The source positions of each output position of a resize, and their weights. */
export interface Taps {
  first: Int32Array;
  weights: Float64Array;
  count: number;
  low: number;
  high: number;
}

const linear = (x: number) => Math.max(1 - Math.abs(x), 0);
const cubic = (a: number) => (t: number) => {
  const x = Math.abs(t);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
};
const sinc = (x: number) => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));
const lanczos = (x: number) => (Math.abs(x) < 3 ? sinc(x) * sinc(x / 3) : 0);

/** Arguments: source size, full size, first position, positions, method, antialias. */
export function tapsOf(args: number[]): Taps {
  return keep(`taps ${args.join(" ")}`, () => makeTaps(args));
}

function makeTaps(args: number[]): Taps {
  const [source, full, start, count, method, antialias] = args as [
    number, number, number, number, number, number,
  ];
  if (method === 0) {
    const first = Int32Array.from({ length: count }, (_, i) =>
      Math.floor(((2 * (start + i) + 1) * source) / (2 * full)),
    );
    return finish(first, new Float64Array(count).fill(1), 1);
  }
  const scale = source / full;
  const indices: number[] = [];
  const weights: number[][] = [];
  for (let i = 0; i < count; i++) {
    const at = start + i;
    const row: number[] = [];
    if (method === 4) {
      const low = at * source;
      const high = (at + 1) * source;
      const first = Math.floor(low / full);
      for (let k = first; k <= first + Math.ceil(source / full); k++) {
        row.push(Math.max(Math.min(high, (k + 1) * full) - Math.max(low, k * full), 0) / source);
      }
      indices.push(first);
    } else {
      const reach = method;
      const center = (at + 0.5) * scale;
      const weigh = method === 1 ? linear : method === 3 ? lanczos : cubic(antialias ? -0.5 : -0.75);
      let first: number;
      if (antialias) {
        const stretch = Math.max(scale, 1);
        first = Math.floor(center - reach * stretch + 0.5);
        const last = first + Math.ceil(2 * reach * stretch);
        for (let k = first; k <= last; k++) {
          row.push(k >= 0 && k < source ? weigh((k + 0.5 - center) / stretch) : 0);
        }
      } else {
        first = Math.floor(center - 0.5) - (reach - 1);
        for (let k = first; k < first + 2 * reach; k++) row.push(weigh(k + 0.5 - center));
      }
      const sum = row.reduce((a, b) => a + b, 0);
      for (let k = 0; k < row.length; k++) row[k]! /= sum;
      indices.push(first);
    }
    weights.push(row);
  }
  return packed(source, indices, weights);
}

/** Move taps beyond the border to the border pixel, and drop unused ones. */
function packed(source: number, indices: number[], weights: number[][]): Taps {
  const inside = (n: number) => Math.min(Math.max(n, 0), source - 1);
  const firsts: number[] = [];
  let count = 1;
  weights.forEach((row, i) => {
    for (let k = 0; k < row.length; k++) if (Math.abs(row[k]!) < 1e-12) row[k] = 0;
    let a = row.findIndex((w) => w !== 0);
    let b = row.findLastIndex((w) => w !== 0);
    if (a < 0) {
      a = 0;
      b = row.length - 1;
    }
    const first = inside(indices[i]! + a);
    firsts.push(first);
    count = Math.max(count, inside(indices[i]! + b) - first + 1);
  });
  const first = Int32Array.from(firsts, (n) => Math.min(n, source - count));
  const made = new Float64Array(firsts.length * count);
  weights.forEach((row, i) => {
    row.forEach((w, k) => {
      const at = Math.min(Math.max(inside(indices[i]! + k) - first[i]!, 0), count - 1);
      made[i * count + at]! += w;
    });
  });
  return finish(first, made, count);
}

function finish(first: Int32Array, weights: Float64Array, count: number): Taps {
  let low = Infinity;
  let high = -Infinity;
  for (const n of first) {
    low = Math.min(low, n);
    high = Math.max(high, n);
  }
  return { first, weights, count, low, high: high + count };
}

/** Words of several tables of taps: first position, then f32 weights. */
export function taps(...args: number[]): Uint32Array {
  const each: Taps[] = [];
  for (let n = 0; n < args.length; n += 6) each.push(tapsOf(args.slice(n, n + 6)));
  const words = new Uint32Array(each.reduce((sum, t) => sum + t.first.length * (1 + t.count), 0));
  const floats = new Float32Array(words.buffer);
  let at = 0;
  for (const t of each) {
    for (let i = 0; i < t.first.length; i++) {
      words[at++] = t.first[i]!;
      for (let k = 0; k < t.count; k++) floats[at++] = t.weights[i * t.count + k]!;
    }
  }
  return words;
}

/** Weights in integers that fit 16 bits and add up to 2 ** bits, with at most that many bits. */
function wholeTaps(t: Taps, most: number): { bits: number; weights: Int32Array } {
  const largest = t.weights.reduce((a, w) => Math.max(a, Math.abs(w)), 0);
  const bits = Math.min(Math.floor(Math.log2(32766 / largest)), most);
  const weights = new Int32Array(t.weights.length);
  for (let i = 0; i < t.first.length; i++) {
    let sum = 0;
    let before = 0;
    for (let k = i * t.count; k < (i + 1) * t.count; k++) {
      sum += t.weights[k]!;
      const rounded = Math.floor(sum * 2 ** bits + (0.5 + 2 ** -20));
      weights[k] = rounded - before;
      before = rounded;
    }
  }
  return { bits, weights };
}

/** Words of the tables of x and y for bytes: both shifts, then first position and weights. */
export function byteTaps(...args: number[]): Uint32Array {
  const [x, y] = [tapsOf(args.slice(0, 6)), tapsOf(args.slice(6))];
  const signed = [...x.weights, ...y.weights].some((w) => w < 0);
  const across = wholeTaps(x, x.count > 64 ? 20 : signed ? 15 : 16);
  const down = wholeTaps(y, 20);
  const fraction = signed ? 6 : 7;
  const words = [down.bits - fraction, across.bits + fraction];
  for (const [t, { weights }] of [[x, across], [y, down]] as const) {
    t.first.forEach((first, i) => {
      words.push(first, ...weights.subarray(i * t.count, (i + 1) * t.count));
    });
  }
  return new Uint32Array(Int32Array.from(words).buffer);
}

const FAR = 2 ** 29;

/** Coordinates of an affine map for each column, then for each row. */
export function affine(...args: number[]): Uint32Array {
  const [a, b, c, d, e, f, height, width] = args as [
    number, number, number, number, number, number, number, number,
  ];
  const words = new Uint32Array(4 * (width + height));
  const split = (at: number, value: number) => {
    const v = Math.min(Math.max(value, -FAR), FAR);
    const whole = Math.floor(v);
    const part = Math.floor((v - whole) * 2 ** 24 + 0.5);
    words[at] = whole + (part >> 24);
    words[at + 1] = part & 0xffffff;
  };
  for (let x = 0; x < width; x++) {
    split(4 * x, a * x);
    split(4 * x + 2, d * x);
  }
  for (let y = 0; y < height; y++) {
    split(4 * (width + y), b * y + c);
    split(4 * (width + y) + 2, e * y + f);
  }
  return words;
}

/** The exponent e of a number m * 2 ** e, with m from 0.5 to 1. */
function exponent(n: number): number {
  let e = Math.floor(Math.log2(n)) + 1;
  while (n >= 2 ** e) e++;
  while (n < 2 ** (e - 1)) e--;
  return e;
}

/** A homography in integers, as low and high words. */
export function perspective(...args: number[]): Uint32Array {
  const [height, width] = [args[9]!, args[10]!];
  const shifts: number[] = [];
  [62, 62, 46].forEach((bits, n) => {
    const [a, b, c] = args.slice(3 * n, 3 * n + 3).map(Math.abs) as [number, number, number];
    const most = a * (width - 1) + b * (height - 1) + c;
    if (most > 0) shifts.push(bits - 1 - exponent(most));
  });
  const shift = shifts.length ? Math.min(...shifts) : 0;
  const whole = args.slice(0, 9).map((n) => BigInt(Math.floor(n * 2 ** shift + 0.5)));
  return new Uint32Array(BigInt64Array.from(whole).buffer);
}
