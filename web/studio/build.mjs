// Bundle the page into src/dala/studio/static. The same sources and lock file give the same bytes.
//   npm ci && npm run build
import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "..", "..", "src", "dala", "studio", "static");

/** Every file that decides what is built, sorted by its path. */
async function sources() {
  const found = ["build.mjs", "package.json", "package-lock.json", "tsconfig.json"];
  async function walk(folder) {
    for (const entry of await readdir(join(here, folder), { withFileTypes: true })) {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory()) await walk(path);
      else found.push(path);
    }
  }
  await walk("src");
  return found.sort();
}

/** SHA-256 over the paths and the contents of all sources; tests/studio/test_built.py does the same. */
async function digest() {
  const hash = createHash("sha256");
  for (const path of await sources()) {
    const bytes = await readFile(join(here, path));
    hash.update(`${path}\0${bytes.length}\0`);
    hash.update(bytes);
  }
  return hash.digest("hex");
}

/** The licenses of the packages whose code or fonts are in the bundle. */
async function licenses(metafile) {
  const names = new Set();
  for (const input of Object.keys(metafile.inputs)) {
    const match = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
    if (match) names.add(match[1]);
  }
  const parts = ["The page of dala studio contains these packages.\n"];
  for (const name of [...names].sort()) {
    const folder = join(here, "node_modules", name);
    const about = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file ? await readFile(join(folder, file), "utf8") : `License: ${about.license}\n`;
    parts.push(`${"-".repeat(80)}\n${name} ${about.version}\n\n${text.trim()}\n`);
  }
  return parts.join("\n");
}

const options = {
  absWorkingDir: here,
  entryPoints: { studio: "src/main.tsx" },
  outdir: out,
  bundle: true,
  splitting: true,
  format: "esm",
  target: ["es2022"],
  minify: true,
  metafile: true,
  legalComments: "none",
  chunkNames: "[name]",
  assetNames: "[name]",
  loader: { ".woff2": "file" },
  logLevel: "warning",
};

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
const result = await esbuild.build(options);
for (const name of ["index.html", "icon.svg"]) {
  await writeFile(join(out, name), await readFile(join(here, "src", name)));
}
await writeFile(join(out, "licenses.txt"), await licenses(result.metafile));
await writeFile(join(out, "sources.sha256"), `${await digest()}\n`);
for (const [file, about] of Object.entries(result.metafile.outputs)) {
  console.log(`${relative(out, join(here, file))}  ${(about.bytes / 1024).toFixed(0)} kB`);
}
