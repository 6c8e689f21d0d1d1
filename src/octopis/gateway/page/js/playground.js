/** The filter playground: check, explain against a notification, and see what would match now. */
import { ask } from "./api.js";
import { AttributesField } from "./attributes_field.js";
import { byId, el, settled } from "./dom.js";
import { FilterField } from "./filter_field.js";
import { write } from "./format.js";
import { LiveList } from "./live_list.js";

const SHOWN = 12;
const SIGNS = { true: "✓ true", false: "✕ false", unknown: "? unknown" };

export class Playground {
  constructor() {
    this.answer = byId("explanation");
    this.dialect = /** @type {HTMLSelectElement} */ (byId("dialect"));
    this.preview = /** @type {HTMLInputElement} */ (byId("preview"));
    this.filter = new FilterField(byId("filter"), {
      dialect: () => this.dialect.value,
      checked: () => this.changed(),
      wrong: () => this.wrong(),
    });
    this.attributes = new AttributesField(byId("explain-attributes"), () => this.explain());
    this.matches = new LiveList({
      list: byId("matches"), said: byId("matches-said"), kept: SHOWN,
      stopped: () => { this.preview.checked = false; },
      chosen: (attributes) => {
        this.attributes.json = write(attributes);
        this.explain();
        byId("explain-attributes").focus();
      },
    });
    this.reopen = settled(() => this.watch(), 400);
    this.dialect.addEventListener("change", () => this.filter.check());
    this.preview.addEventListener("change", () => this.watch());
    this.asked = 0;
  }

  shown() {
    if (!this.hasBegun) this.filter.check();
    this.hasBegun = true;
  }

  changed() {
    this.explain();
    if (this.preview.checked) this.reopen();
  }

  wrong() {
    this.answer.replaceChildren();
    this.matches.close();
    if (this.preview.checked) this.matches.say("waiting for a filter that is right");
  }

  async explain() {
    const { json } = this.attributes;
    if (!this.filter.isRight || json === null) {
      this.answer.replaceChildren();
      return;
    }
    const number = ++this.asked;
    // The attributes go as they are written: 1.0 is another value than 1.
    const words = { filter: this.filter.text, dialect: this.dialect.value };
    const body = `${JSON.stringify(words).slice(0, -1)},"attributes":${json}}`;
    try {
      const found = await ask("/filters/explain", body);
      if (number === this.asked) this.show(found);
    } catch (problem) {
      if (number === this.asked) this.attributes.say(`✕ ${problem.message}`, true);
    }
  }

  show(found) {
    const verdict = { true: "✓ matches", false: "✕ does not match", unknown: "? does not match: unknown" };
    this.attributes.show();
    this.answer.replaceChildren(
      el("p", { class: `verdict ${found.truth}`, text: verdict[found.truth] }),
      el("ul", { class: "lines" }, ...found.lines.map(line)),
    );
  }

  /** Follow the filter as it is now, or nothing. */
  watch() {
    if (!this.preview.checked) {
      this.matches.close();
      this.matches.say("");
    } else if (this.filter.isRight) this.matches.open(this.filter.text, this.dialect.value);
    else this.matches.say("waiting for a filter that is right");
  }
}

function line({ text, truth, reason, depth }) {
  const item = el(
    "li",
    { class: truth },
    el("span", { class: "truth", text: SIGNS[truth] }),
    el("code", { text }),
    el("small", { text: reason }),
  );
  item.style.setProperty("--depth", String(Math.min(depth, 8)));
  return item;
}
