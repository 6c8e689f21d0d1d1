/** A field for the attributes of a notification, as a JSON object. */
import { el, settled } from "./dom.js";

/**
 * Checks as one types. The text itself is sent, so that 1.0 stays a float and a long integer whole.
 */
export class AttributesField {
  /** @param {HTMLTextAreaElement} field @param {() => void} [changed] */
  constructor(field, changed = () => {}) {
    this.field = field;
    this.said = el("p", { class: "said", role: "status", id: `${field.id}-said` });
    field.after(this.said);
    field.setAttribute("aria-describedby", this.said.id);
    field.setAttribute("spellcheck", "false");
    const settle = settled(() => { this.show(); changed(); }, 180);
    field.addEventListener("input", settle);
  }

  /** The JSON text, or null where it is none. */
  get json() {
    return this.mistake() ? null : this.field.value;
  }

  set json(text) {
    this.field.value = text;
    this.show();
  }

  mistake() {
    try {
      const found = JSON.parse(this.field.value);
      const isObject = found !== null && typeof found === "object" && !Array.isArray(found);
      return isObject ? "" : 'a JSON object is needed, as in {"price": 60}';
    } catch (failure) {
      return failure.message;
    }
  }

  show() {
    const mistake = this.mistake();
    this.say(mistake ? `✕ ${mistake}` : "", mistake !== "");
  }

  say(text, isWrong) {
    this.said.textContent = text;
    this.said.classList.toggle("wrong", isWrong);
    this.field.setAttribute("aria-invalid", String(isWrong));
  }
}
