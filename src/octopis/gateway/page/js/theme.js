/** Light or dark: as the system has it, until the person says otherwise. */
import { byId } from "./dom.js";

const NEXT = { auto: "light", light: "dark", dark: "auto" };
const SHOWN = { auto: "◐ auto", light: "○ light", dark: "● dark" };
const KEY = "octopis.theme";

/** @param {() => void} changed What is drawn in colours of its own is drawn anew. */
export function startTheme(changed) {
  const button = byId("theme");
  let theme = kept();
  const show = () => {
    document.documentElement.dataset.theme = theme;
    button.textContent = SHOWN[theme];
    button.setAttribute("aria-label", `Theme: ${theme}`);
  };
  button.addEventListener("click", () => {
    theme = NEXT[theme];
    keep(theme);
    show();
    changed();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  show();
}

function kept() {
  try {
    const found = localStorage.getItem(KEY);
    return found in NEXT ? found : "auto";
  } catch {
    return "auto"; // a browser may refuse to keep anything
  }
}

function keep(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // it holds for this visit, then
  }
}
