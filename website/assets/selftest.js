// The self-test of a browser: runs exported filters on its GPU and compares checksums.
import { Dala } from "./dala.js";

const home = new URL("selftest/", import.meta.url);

/** CRC-32 of bytes, as zlib computes it. */
function crc32(bytes, start = 0) {
  let crc = ~start;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

/** The checksum of a result: of its shape and its bytes. */
async function checksum(result) {
  const bytes = new Uint8Array((await result.read()).buffer);
  const shape = `${result.height}x${result.width}x${result.channels}`;
  const head = crc32(new TextEncoder().encode(shape));
  return crc32(bytes, head).toString(16).padStart(8, "0");
}

async function describe() {
  const adapter = await navigator.gpu?.requestAdapter();
  if (!adapter) return null;
  const { vendor, architecture, device, description } = adapter.info ?? {};
  return [vendor, architecture, device, description].filter(Boolean).join(", ") || "unnamed";
}

/** Run every case; `told` is called after each. */
export async function selftest(told = () => {}) {
  const { version, pictures, cases } = await (await fetch(new URL("cases.json", home))).json();
  const report = { version, browser: navigator.userAgent, adapter: await describe(), rows: 0 };
  report.differing = [];
  if (report.adapter === null) return report;
  for (const [number, { name, file, sums }] of cases.entries()) {
    let chain;
    try {
      chain = await Dala.load(new URL(file, home).href);
      for (const [picture, expected] of Object.entries(sums)) {
        const { width, height, base64 } = pictures[picture];
        const data = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
        const got = await checksum(await chain.run({ data, width, height }, {}));
        report.rows += 1;
        if (got !== expected) report.differing.push(`${name}/rgba/${picture}: ${got}, not ${expected}`);
      }
    } catch (error) {
      report.differing.push(`${name}: ${error.message}`);
    } finally {
      chain?.close();
    }
    told(number + 1, cases.length);
  }
  return report;
}

export function written(report) {
  if (report.adapter === null) return `${report.browser}\nThis browser has no WebGPU.`;
  return [
    `Dala ${report.version} in a browser`,
    report.browser,
    `GPU: ${report.adapter}`,
    `${report.rows} rows, ${report.differing.length} differ`,
    ...report.differing.map((line) => `  ${line}`),
  ].join("\n");
}

const place = document.getElementById("selftest");
if (place) {
  const button = place.appendChild(document.createElement("button"));
  const page = place.appendChild(document.createElement("pre"));
  button.textContent = "Run the self-test";
  button.className = "md-button";
  button.onclick = async () => {
    button.disabled = true;
    const told = (done, all) => (page.textContent = `${done} of ${all} filters`);
    page.textContent = written(await selftest(told));
    button.textContent = "Copy the report";
    button.disabled = false;
    button.onclick = () => navigator.clipboard.writeText(page.textContent);
  };
}
