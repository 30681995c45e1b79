// Dala's runtime for exported chains: load one, run it on pictures, show it on a canvas.

import { Chain, Result } from "./chain.js";
import { DalaChain, mount } from "./element.js";
import { Unsupported } from "./gpu.js";
import { analyser } from "./sound.js";

/** Load an exported chain. */
export const load = Chain.load;

export const Dala = { load, mount, Chain, Result, Unsupported, DalaChain, analyser };
export default Dala;

export { Chain, DalaChain, Result, Unsupported, analyser, mount };
export type { Params, RunOptions } from "./chain.js";
export type { ChainDocument, Control } from "./document.js";
export type { MountOptions, Mounted } from "./element.js";
export type { RawPicture, Source } from "./pictures.js";

if (globalThis.customElements && !customElements.get("dala-chain")) {
  customElements.define("dala-chain", DalaChain);
}
(globalThis as Record<string, unknown>).Dala ??= Dala;
