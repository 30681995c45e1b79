// Line icons on a grid of 24, drawn for this page.
import type { JSX } from "preact";

const PATHS = {
  play: "M8 5.5v13l10.5-6.5z",
  pause: "M8 5.5v13M16 5.5v13",
  back: "M17 6v12l-8-6zM6 6v12",
  forward: "M7 6v12l8-6zM18 6v12",
  start: "M18 6v12l-9-6zM6 6v12",
  loop: "M17 3.5l3 3-3 3M4 11.5v-1a4 4 0 0 1 4-4h12M7 20.5l-3-3 3-3M20 12.5v1a4 4 0 0 1-4 4H4",
  plus: "M12 5v14M5 12h14",
  close: "M6.5 6.5l11 11M17.5 6.5l-11 11",
  undo: "M8.5 14 4.5 10l4-4M5 10h9a5.5 5.5 0 0 1 0 11h-3",
  redo: "M15.5 14l4-4-4-4M19 10h-9a5.5 5.5 0 0 0 0 11h3",
  grip: "M9.5 6h.01M14.5 6h.01M9.5 12h.01M14.5 12h.01M9.5 18h.01M14.5 18h.01",
  more: "M6 12h.01M12 12h.01M18 12h.01",
  reset: "M4.5 12a7.5 7.5 0 1 0 2.4-5.5M4.5 4v3.5H8",
  trash: "M5 7h14M10 7V5h4v2M7 7l.8 12h8.4L17 7M10.5 10.5v5.5M13.5 10.5v5.5",
  copy: "M9 9h10v11H9zM5 15V4h10",
  split: "M12 3.5v17M4.5 6.5h5v11h-5zM14.5 6.5h5v11h-5",
  chart: "M4 20h16M6.5 17v-4M10.5 17V8M14.5 17v-6.5M18.5 17V5",
  wave: "M3 12c2-7 4-7 6 0s4 7 6 0 4-7 6 0",
  pulse: "M3 12h4l3-8 4 16 3-8h4",
  record: "M12 20a8 8 0 1 0 0-16 8 8 0 0 0 0 16zM12 14.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5z",
  fit: "M4 9V4.5h4.5M15.5 4.5H20V9M20 15v4.5h-4.5M8.5 19.5H4V15",
  search: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM15.5 15.5 20 20",
  home: "M12 4v11M7.5 10.5 12 15l4.5-4.5M5 19.5h14",
  code: "M8.5 7.5 4 12l4.5 4.5M15.5 7.5 20 12l-4.5 4.5",
  film: "M4 5h16v14H4zM8 5v14M16 5v14M4 9.7h4M4 14.3h4M16 9.7h4M16 14.3h4",
  image: "M4 5h16v14H4zM4 16l4.5-5 4 4 2.5-2.5 5 4.5M15.5 9.2h.01",
  camera: "M3.5 7h11v10h-11zM14.5 10.5l6-3v9l-6-3z",
  layers: "M12 4 3.5 8.5 12 13l8.5-4.5zM4 13l8 4.3 8-4.3M4 17l8 4.3 8-4.3",
  folder: "M3.5 6.5h6l2 2.5h9v9.5h-17z",
  upload: "M12 15.5V4.5M7.5 9 12 4.5 16.5 9M5 19.5h14",
  sun: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 3v2M12 19v2M3 12h2M19 12h2M5.6 5.6 7 7M17 17l1.4 1.4M18.4 5.6 17 7M7 17l-1.4 1.4",
  moon: "M19.5 14.5A8 8 0 0 1 9.5 4.5a8 8 0 1 0 10 10z",
  auto: "M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 0 1 0 16",
  help: "M9.2 9.2a2.9 2.9 0 1 1 4.1 2.8c-.9.5-1.3 1-1.3 2M12 17.5h.01",
  flow: "M4 6.5h6v4H4zM14 13.5h6v4h-6zM10 8.5h3.5a3 3 0 0 1 3 3v2",
  spark: "M12 3.5l1.9 5.6 5.6 1.9-5.6 1.9L12 18.5l-1.9-5.6L4.5 11l5.6-1.9z",
  face: "M12 20a8 8 0 1 0 0-16 8 8 0 0 0 0 16zM9 10h.01M15 10h.01M8.5 14.2c1.9 2.2 5.1 2.2 7 0",
  sliders: "M5 5v5M5 14v5M3 14h4M12 5v2M12 11v8M10 7h4M19 5v7M19 16v3M17 16h4",
  chevron: "M8 10l4 4 4-4",
  right: "M10 8l4 4-4 4",
  eye: "M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12zM12 14.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5z",
  off: "M4 4l16 16M9.5 5.9A9 9 0 0 1 12 5.5c6 0 9.5 6.5 9.5 6.5a17 17 0 0 1-3 3.7M6 7.7A16 16 0 0 0 2.5 12S6 18.5 12 18.5c1.3 0 2.5-.3 3.600-.8",
  diamond: "M12 5.5l6.5 6.5-6.5 6.5L5.5 12z",
  text: "M5 6.5V5h14v1.5M12 5v14M9.5 19h5",
  square: "M5.5 5.5h13v13h-13z",
  check: "M5 12.5l4.5 4.5L19 7.5",
  alert: "M12 4 2.8 19.5h18.400zM12 10v4.5M12 17h.01",
  web: "M12 20a8 8 0 1 0 0-16 8 8 0 0 0 0 16zM4 12h16M12 4c3 3 3 13 0 16M12 4c-3 3-3 13 0 16",
  terminal: "M4 5h16v14H4zM7.5 9.5 10 12l-2.5 2.5M12.5 14.5h4",
  save: "M5 4.5h11l3 3v12H5zM8.5 4.5v5h6v-5M8 19.5v-6h8v6",
  bookmark: "M7 4.5h10v15.5l-5-4-5 4z",
  target: "M12 19a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM12 2.5v5M12 16.5v5M2.5 12h5M16.5 12h5",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }): JSX.Element {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
