// Bundle the runtime and its types into src/dala/web/static, with a hash of their sources.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const target = join(here, "../../src/dala/web/static");

execFileSync(join(here, "node_modules/.bin/tsc"), ["--noEmit"], { cwd: here, stdio: "inherit" });
await build({
  entryPoints: [join(here, "src/index.ts")],
  outfile: join(target, "dala.js"),
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  banner: { js: "/* Dala runtime, Apache-2.0. Built from web/runtime. */" },
});

// The public types of all modules, in one file.
const folder = mkdtempSync(join(tmpdir(), "dala-types-"));
try {
  execFileSync(
    join(here, "node_modules/.bin/tsc"),
    ["--declaration", "--emitDeclarationOnly", "--stripInternal", "--outDir", folder],
    { cwd: here, stdio: "inherit" },
  );
  const names = ["expressions", "document", "pictures", "chain", "clock", "element", "gpu", "sound", "index"];
  const text = names.map((name) =>
    readFileSync(join(folder, `${name}.d.ts`), "utf8")
      .replace(/^import .*?;\n/gms, "")
      .replace(/^export (type )?\{[^}]*\} from .*?;\n/gms, "")
      .replace(/^export \{[^}]*\};\n/gms, "")
      .replace(/^export default .*?;\n/gms, "")
      .replace(/^export (?=declare|interface|type)/gm, "")
      .replace(/\bimport\("\.\/[a-z]+\.js"\)\./g, ""),
  );
  // What the module exports, and nothing else.
  const index = readFileSync(join(folder, "index.d.ts"), "utf8");
  const types = [...index.matchAll(/^export type \{([^}]*)\}/gm)].flatMap((m) => m[1].split(",").map((n) => n.trim()));
  text.push("export { Chain, Dala, DalaChain, Result, Unsupported, analyser, Dala as default, load, mount };");
  text.push(`export type { ${types.sort().join(", ")} };\n`);
  const own = text.join("\n").split("\n").filter((line) => !line.startsWith("//")).join("\n");
  const head = '/// <reference types="@webgpu/types" />\n// Types of the Dala runtime. Built from web/runtime.\n';
  writeFileSync(join(target, "dala.d.ts"), head + own);
} finally {
  rmSync(folder, { recursive: true });
}

const hash = createHash("sha256");
const sources = readdirSync(join(here, "src")).sort().map((name) => `src/${name}`);
for (const name of [...sources, "build.mjs", "tsconfig.json", "package.json"]) {
  hash.update(name).update("\0").update(readFileSync(join(here, name))).update("\0");
}
writeFileSync(join(target, "sources.sha256"), `${hash.digest("hex")}\n`);
