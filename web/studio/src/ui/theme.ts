// Light, dark, or what the system prefers; remembered by the browser.
import { signal } from "@preact/signals";

export type Theme = "auto" | "dark" | "light";
const KEY = "dala-studio-theme";

export const theme = signal<Theme>(stored());

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "dark" || value === "light" ? value : "auto";
  } catch {
    return "auto";
  }
}

const light = matchMedia("(prefers-color-scheme: light)");
light.addEventListener("change", applyTheme);

export function applyTheme(): void {
  const shown = theme.value === "auto" ? (light.matches ? "light" : "dark") : theme.value;
  document.documentElement.dataset.theme = shown;
}

export function nextTheme(): void {
  const order: Theme[] = ["auto", "dark", "light"];
  theme.value = order[(order.indexOf(theme.value) + 1) % order.length];
  applyTheme();
  try {
    localStorage.setItem(KEY, theme.value);
  } catch {
    // a browser without storage forgets it
  }
}
