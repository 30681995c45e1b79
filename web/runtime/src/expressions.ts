// Formulas of a plan: numbers, names of symbols, or lists of an operator and its operands.
// src/dala/gpu/compute/engines/symbols.py defines them.

import { fixedPoint, round } from "./fixed.js";
import { affine, byteTaps, gauss, gaussSteps, perspective, taps, tapsOf } from "./tables.js";

export type Expression = number | string | [string, ...Expression[]];
/** A comparison, its operands and its result. */
export type Guard = ["==" | "<" | "<=", Expression, Expression, boolean];
/** The number of each symbol. */
export type Numbers = Map<string, number>;

const FUNCTIONS: Record<string, (...n: number[]) => number> = {
  "+": (...n) => n.reduce((a, b) => a + b),
  "*": (...n) => n.reduce((a, b) => a * b),
  "/": (a, b) => a! / b!,
  "//": (a, b) => Math.floor(a! / b!),
  "%": (a, b) => a! - b! * Math.floor(a! / b!),
  "**": (a, b) => a! ** b!,
  floor: (a) => Math.floor(a!),
  ceil: (a) => Math.ceil(a!),
  trunc: (a) => Math.trunc(a!),
  round: (a) => round(a!),
  abs: (a) => Math.abs(a!),
  bits: (a) => (a! > 0 ? 32 - Math.clz32(a!) : 0),
  cos: (a) => Math.cos(a!),
  sin: (a) => Math.sin(a!),
  fixed_point: (index, window, length, ...n) => fixedPoint(window!, length!, ...n)[index!]!,
  gauss: (radius, sigma, d) => gauss(radius!, sigma!)[d!]!,
  gauss_steps: (radius, sigma, d) => gaussSteps(radius!, sigma!)[d!]!,
  taps_count: (...n) => tapsOf(n).count,
  taps_first: (...n) => tapsOf(n).low,
  taps_end: (...n) => tapsOf(n).high,
};

const TABLES: Record<string, (...n: number[]) => Uint32Array> = {
  taps,
  byte_taps: byteTaps,
  affine,
  perspective,
};

export function evaluate(e: Expression, numbers: Numbers): number {
  if (typeof e === "number") return e;
  if (typeof e === "string") {
    const found = numbers.get(e);
    if (found === undefined) throw new Error(`dala: no symbol ${e}`);
    return found;
  }
  const call = FUNCTIONS[e[0]];
  if (!call) throw new Error(`dala: no function ${e[0]}`);
  return call(...(e.slice(1) as Expression[]).map((x) => evaluate(x, numbers)));
}

/** The words of a table that depends on symbols. */
export function table(e: Expression, numbers: Numbers): Uint32Array {
  const [name, ...rest] = e as [string, ...Expression[]];
  const make = TABLES[name];
  if (!make) throw new Error(`dala: no table ${name}`);
  return make(...rest.map((x) => evaluate(x, numbers)));
}

export function holds([kind, a, b, result]: Guard, numbers: Numbers): boolean {
  const x = evaluate(a, numbers);
  const y = evaluate(b, numbers);
  return (kind === "==" ? x === y : kind === "<" ? x < y : x <= y) === result;
}
