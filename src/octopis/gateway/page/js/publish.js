/** The form that publishes one notification. */
import { ask } from "./api.js";
import { AttributesField } from "./attributes_field.js";
import { byId, el } from "./dom.js";
import { clock, plural } from "./format.js";

const KEPT = 8;

export class Publish {
  constructor() {
    this.attributes = new AttributesField(byId("publish-attributes"));
    this.payload = /** @type {HTMLTextAreaElement} */ (byId("publish-payload"));
    byId("publish-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.publish();
    });
  }

  async publish() {
    const { json } = this.attributes;
    if (json === null) {
      this.attributes.show();
      this.attributes.field.focus();
      return;
    }
    const payload = base64(this.payload.value);
    const body = `{"attributes":${json},"payload":${JSON.stringify(payload)}}`;
    try {
      const { accepted } = await ask("/notifications", body);
      this.say(`✓ ${plural(accepted, "notification")} accepted`, "good");
    } catch (problem) {
      this.say(`✕ ${problem.message}`, "bad");
    }
  }

  say(text, tone) {
    const list = byId("published");
    list.prepend(el("li", { class: tone }, el("time", { text: clock(Date.now()) }), el("span", { text })));
    while (list.children.length > KEPT) list.lastElementChild.remove();
  }
}

/** Text in UTF-8 in base64. */
function base64(text) {
  const letters = Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte));
  return btoa(letters.join(""));
}
