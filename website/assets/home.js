// The picture of the home page, live: the kernel that its program shows, by WebGPU. Without it the
// still stays, with a word about what to do. Pictures rest where readers asked for less motion,
// while they are out of sight, and on a click.

import { Dala } from "./dala.js";

const figure = document.querySelector(".hero figure");
const still = figure.querySelector("img");
const caption = figure.querySelector("figcaption");
const canvas = document.createElement("canvas");
canvas.setAttribute("role", "img");
canvas.setAttribute("aria-label", still.alt);
// A canvas that has just come into the page is empty until its next frame.
canvas.style.background = `url("${still.src}") center / cover`;
/** Seconds around the circle, as the program has it. */
const ROUND = 40;

let resting = matchMedia("(prefers-reduced-motion: reduce)").matches;
let seen = true;
let time = 0;
let last = 0;

function picture() {
  const scale = Math.min(devicePixelRatio || 1, 1280 / Math.max(figure.clientWidth, 1));
  const width = Math.max(Math.round(figure.clientWidth * scale), 16);
  const height = Math.round((width * 9) / 16);
  return { data: new Uint8Array(width * height * 4), width, height };
}

async function begin() {
  const chain = await Dala.load(new URL("silk.json", import.meta.url));
  let given = picture();
  const draw = async () => {
    const params = { t: (time / ROUND) * 2 * Math.PI, zoom: given.height / 2 };
    await chain.draw(given, canvas, params);
  };
  await draw();
  still.closest("p").replaceChildren(canvas);
  const button = document.createElement("button");
  button.type = "button";
  const label = () => (button.textContent = resting ? "Play" : "Pause");
  caption.append(" It runs on your GPU. ", button);
  button.addEventListener("click", () => {
    resting = !resting;
    label();
    go();
  });
  label();
  new ResizeObserver(() => {
    given = picture();
    if (resting) void draw();
  }).observe(figure);
  new IntersectionObserver(([entry]) => {
    seen = entry.isIntersecting;
    go();
  }).observe(figure);

  let waiting = 0;
  function go() {
    if (waiting || resting || !seen) return;
    last = performance.now();
    waiting = requestAnimationFrame(step);
  }
  async function step(now) {
    time += Math.min(now - last, 100) / 1000;
    last = now;
    try {
      await draw();
    } catch (error) {
      if (!chain.lost) throw error; // a lost GPU comes back with the next frame
    }
    waiting = resting || !seen ? 0 : requestAnimationFrame(step);
  }
  go();
}

begin().catch((error) => {
  if (!(error instanceof Dala.Unsupported)) throw error;
  caption.append(` With WebGPU it moves. ${error.message}`);
});
