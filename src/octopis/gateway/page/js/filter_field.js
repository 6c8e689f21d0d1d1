/**
 * A field for a filter that is checked as one types; a mistake is marked at its place, by a layer
 * behind the text that has the same letters.
 */
import { ask } from "./api.js";
import { el, settled } from "./dom.js";

const SETTLED_MS = 180;

/** @typedef {{filter: string, names: string[], warnings: string[]}} Checked */

export class FilterField {
  /**
   * @param {HTMLTextAreaElement} field
   * @param {{checked?: (found: Checked) => void, wrong?: (problem: Error) => void,
   *   dialect?: () => string}} listener
   */
  constructor(field, listener = {}) {
    this.field = field;
    this.listener = listener;
    this.said = el("p", { class: "said", role: "status", id: `${field.id}-said` });
    this.marks = el("div", { class: "marks", "aria-hidden": "true" });
    const frame = el("div", { class: "marked" });
    field.replaceWith(frame);
    frame.append(this.marks, field);
    frame.after(this.said);
    field.setAttribute("aria-describedby", this.said.id);
    field.setAttribute("spellcheck", "false");
    this.isRight = false;
    const check = settled(() => this.check(), SETTLED_MS);
    field.addEventListener("input", () => {
      this.isRight = false;
      this.mark(null);
      check();
    });
    field.addEventListener("scroll", () => { this.marks.scrollTop = field.scrollTop; });
  }

  get text() {
    return this.field.value.trim();
  }

  async check() {
    const text = this.field.value;
    if (!text.trim()) {
      this.isRight = false;
      this.say("", false);
      this.listener.wrong?.(new Error("empty"));
      return;
    }
    let found = null;
    let problem = null;
    try {
      found = await ask("/filters/check", { filter: text, dialect: this.listener.dialect?.() ?? "sql" });
    } catch (failure) {
      problem = failure;
    }
    if (text !== this.field.value) return; // another answer is on its way
    this.isRight = problem === null;
    this.mark(problem?.position ?? null);
    this.say(problem ? `✕ ${problem.message}` : this.inWords(found), problem !== null);
    if (problem) this.listener.wrong?.(problem);
    else this.listener.checked?.(found);
  }

  inWords(found) {
    const warnings = found.warnings.map((warning) => ` Note: ${warning}.`).join("");
    const names = found.names.length ? ` It asks for ${found.names.join(", ")}.` : "";
    return `✓ ${found.filter}${found.filter.endsWith(".") ? "" : "."}${names}${warnings}`;
  }

  say(text, isWrong) {
    this.said.textContent = text;
    this.said.classList.toggle("wrong", isWrong);
    this.field.setAttribute("aria-invalid", String(isWrong));
  }

  /** Mark what begins at a position, which counts characters from 1; null marks nothing. */
  mark(position) {
    const letters = [...this.field.value]; // a position counts characters, not halves of them
    if (position === null || position === undefined) {
      this.marks.replaceChildren();
      return;
    }
    const start = Math.min(position - 1, letters.length);
    const word = letters.slice(start).join("").match(/^(\w+|'[^']*'?|\S|\s*)/)?.[0] ?? "";
    const end = start + [...word].length;
    this.marks.replaceChildren(
      letters.slice(0, start).join(""),
      el("mark", { text: word.trim() ? word : "\u00a0" }),
      letters.slice(end).join(""),
    );
    this.marks.scrollTop = this.field.scrollTop;
  }
}
