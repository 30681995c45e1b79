// The look of a chain on a page: that of the studio.

export const STYLE = `
:host { display: block; }
.dala { --canvas: #0b0d11; --panel: #151920; --field: #0f1218; --line: #2a313d; --text: #e8ebf0; --muted: #9aa4b2;
  --accent: #ff7a4d; --on-accent: #1d0c05; --hover: #ffffff14; --bad: #ff6b74; --ring: #ffb59a;
  display: grid; gap: .75rem; grid-template-columns: minmax(0, 1fr) minmax(12rem, 18rem); align-items: start; }
@media (prefers-color-scheme: light) {
  .dala { --canvas: #e4e7ec; --panel: #f8f9fb; --field: #f1f3f7; --line: #d5dae2; --text: #171c24; --muted: #515c6b;
    --accent: #c8440f; --on-accent: #fff; --hover: #1018240f; --bad: #c22532; --ring: #c8440f; }
}
.dala[data-ui=none], .dala.bare { grid-template-columns: minmax(0, 1fr); }
@media (max-width: 40rem) { .dala { grid-template-columns: minmax(0, 1fr); } }
.view { position: relative; min-width: 0; }
canvas, img { display: block; max-width: 100%; max-height: 80vh; height: auto; margin: auto;
  background: repeating-conic-gradient(#8883 0 25%, #0000 0 50%) 0 0 / 16px 16px; }
canvas.drawn { width: 100%; aspect-ratio: 16 / 9; touch-action: none; background: none; }
canvas:focus-visible { outline: 2px solid var(--ring); outline-offset: -2px; }
.over canvas { outline: 3px dashed Highlight; }
.side { display: grid; gap: .6rem; font: 14px/1.3 "Inter Variable", system-ui, -apple-system, "Segoe UI", sans-serif; }
.title { margin: 0; padding-right: 40px; font-size: 15px; font-weight: 600; overflow-wrap: anywhere; }
.bar { display: flex; flex-wrap: wrap; gap: .4rem; align-items: center; }
button, .file, select { font: inherit; padding: .3rem .7rem; border: 1px solid var(--line); border-radius: 8px;
  background: var(--field); color: inherit; cursor: pointer; }
.dala:not(.fill) :is(button, .file, select) { background: #8882; border-color: #8888; }
button:hover, .file:hover, select:hover { background: var(--hover); }
button:focus-visible, .file:focus-within, input:focus-visible, select:focus-visible { outline: 2px solid var(--ring); }
.file { display: inline-flex; align-items: center; box-sizing: border-box; }
select { padding-inline: .4rem; }
.file input { position: absolute; opacity: 0; width: 1px; height: 1px; }
button.play { min-width: 4.6rem; background: var(--accent); border-color: var(--accent); color: var(--on-accent); font-weight: 600; }
.dala:not(.fill) button.play { background: var(--accent); border-color: var(--accent); }
label.row { display: grid; grid-template-columns: 1fr auto; gap: .1rem .5rem; align-items: center; }
label.row input[type=range] { grid-column: 1 / -1; width: 100%; margin: 0; accent-color: var(--accent); }
input[type=checkbox] { accent-color: var(--accent); }
.number, .time { font-variant-numeric: tabular-nums; opacity: .75; }
.time { margin-left: auto; }
.status { opacity: .75; font-variant-numeric: tabular-nums; min-height: 1.3em; }
.problem { padding: .6rem .8rem; border-radius: .4rem; background: #d7263d22; border: 1px solid #d7263d88; opacity: 1; }
h2 { font-size: 12px; font-weight: 600; letter-spacing: .04em; text-transform: uppercase; color: var(--muted); margin: .4rem 0 0; }
.toggle { display: none; }
.dala.fill { position: fixed; inset: 0; display: block; background: var(--canvas); color: var(--text); }
.fill .view { position: absolute; inset: 0; }
.fill canvas, .fill canvas.drawn, .fill img { width: 100%; height: 100%; max-height: none; aspect-ratio: auto; object-fit: contain; background: none; }
.fill .view > .problem { position: absolute; inset: 16px auto auto 16px; box-sizing: border-box; max-width: min(34rem, calc(100% - 88px)); margin: 0; z-index: 1; background: var(--panel); }
.fill .side { font-size: 13px; position: absolute; top: 12px; right: 12px; box-sizing: border-box; width: min(300px, calc(100% - 24px));
  max-height: calc(100% - 24px); overflow: auto; padding: 12px 14px 14px; border: 1px solid var(--line); border-radius: 14px;
  background: color-mix(in srgb, var(--panel) 90%, transparent); backdrop-filter: blur(14px); box-shadow: 0 12px 40px #0006; }
.fill.closed .side { display: none; }
.fill .toggle { display: grid; place-items: center; position: absolute; z-index: 2; top: 18px; right: 18px; width: 36px; height: 36px;
  padding: 0; border-radius: 10px; background: var(--panel); color: var(--text); }
.fill .toggle:hover { background: var(--field); }
.toggle svg { width: 18px; height: 18px; fill: none; stroke: currentColor; stroke-width: 2; stroke-linecap: round; }
@media (max-width: 40rem) {
  .fill .side { top: auto; bottom: 0; right: 0; width: 100%; max-height: 52%; border-radius: 16px 16px 0 0; border-width: 1px 0 0; }
  .fill:not(.closed) .view { bottom: 52%; }
  .fill .side { padding-right: 16px; }
  .fill .toggle { top: 12px; right: 12px; width: 44px; height: 44px; }
  .fill :is(button, .file, select) { min-height: 44px; }
  .fill label.row input[type=range] { height: 32px; }
}
`;
