// Integer weights of sums of bytes, as the desktop computes them:
// src/dala/gpu/compute/lang/exact/fixed_point.py has the definition.

const NARROW_BITS = 15;
const WIDE_BITS = 20;
const LARGEST_INT16 = 32767;

interface Sum {
  weights: number[];
  counts: number[];
  bias: number;
}

/** Round half to even, as Python does. */
export function round(x: number): number {
  const low = Math.floor(x);
  const part = x - low;
  if (part !== 0.5) return Math.round(x);
  return low % 2 === 0 ? low : low + 1;
}

const clamp = (x: number, low: number, high: number) => Math.min(Math.max(x, low), high);
const finite = (x: number) => (Number.isNaN(x) ? 0 : clamp(x, -1e30, 1e30));

/** Arguments: whether the sums are of neighbors, the length of the layout, the layout, the numbers. */
export function fixedPoint(window: number, length: number, ...given: number[]): number[] {
  const layout = given.slice(0, length);
  const numbers = given.slice(length).map(finite);
  const sums: Sum[] = [];
  for (let at = 0, place = 0; at < layout.length; ) {
    const n = layout[at]!;
    sums.push({
      weights: numbers.slice(place, place + n),
      counts: layout.slice(at + 1, at + 1 + n),
      bias: numbers[place + n]!,
    });
    at += 1 + n;
    place += n + 1;
  }
  const largest = Math.max(0, ...sums.flatMap((s) => s.weights.map(Math.abs)));
  const sizes = sums.map((s) => s.weights.reduce((a, w, i) => a + Math.abs(w) * s.counts[i]!, 0));
  const size = Math.max(...sizes) * 255 + 256;
  const room = Math.floor(Math.log2(2 ** 30 / (2 * size)));
  const most = 255 * Math.max(0, ...sums.map((s) => s.counts.reduce((a, b) => a + b, 0)));
  if (most <= LARGEST_INT16) {
    let narrow = NARROW_BITS;
    while (narrow && round(largest * 2 ** narrow) > LARGEST_INT16) narrow--;
    if (narrow <= room) {
      const found = rounded(sums, narrow, size);
      if (error(sums, found, narrow) <= (window ? 1 / 32 : 1 / 100)) return flat(found, narrow);
    }
  }
  const bits = Math.min(room, WIDE_BITS);
  return flat(rounded(sums, bits, size), Math.max(bits, 0) + 32);
}

type Rows = { weights: number[]; bias: number }[];

function flat(rows: Rows, bits: number): number[] {
  return [...rows.flatMap((r) => r.weights), ...rows.map((r) => r.bias), bits];
}

function integerWeights(weights: number[], unit: number): number[] {
  const exact = weights.map((w) => w * unit);
  const made = exact.map(Math.floor);
  const rests = exact.map((w, i) => w - made[i]!);
  const order = rests.map((_, i) => i).sort((a, b) => rests[b]! - rests[a]! || a - b);
  for (const i of order.slice(0, round(rests.reduce((a, b) => a + b, 0)))) made[i]! += 1;
  return made;
}

function rounded(sums: Sum[], bits: number, size: number): Rows {
  const unit = 2 ** bits;
  return sums.map(({ weights, counts, bias }) => ({
    weights:
      new Set(counts).size <= 1
        ? integerWeights(weights, unit)
        : weights.map((w) => round(w * unit)),
    bias: Math.floor(clamp(bias, -2 * size, 2 * size) * unit + 0.5 * Math.max(unit, 1) + 0.5),
  }));
}

function error(sums: Sum[], found: Rows, bits: number): number {
  let worst = 0;
  sums.forEach(({ weights, counts }, s) => {
    let above = 0;
    let below = 0;
    weights.forEach((w, i) => {
      const off = (found[s]!.weights[i]! / 2 ** bits - w) * counts[i]!;
      if (off > 0) above += off;
      else below -= off;
    });
    worst = Math.max(worst, above, below);
  });
  return 255 * worst;
}
