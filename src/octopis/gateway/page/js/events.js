/** The last 100 events, the newest first; what is new is also told to screen readers. */
import { byId, el } from "./dom.js";
import { clock } from "./format.js";

const KEPT = 100;

/** An overload that comes and goes is two lines, not a hundred. */
const FOLDED_AMONG = 8;
const TOLD_EVERY_MS = 3000;
const TOLD_MOST = 3;

const SIGNS = {
  link_down: ["✕", "bad"], link_up: ["✓", "good"], overload: ["▲", "warn"], relief: ["▽", "good"],
  broker_down: ["✕", "bad"], broker_up: ["✓", "good"], restart: ["↻", "warn"],
  slow_client: ["◔", "warn"], drop: ["⌫", "bad"],
};

export class Events {
  /** @param {import("./store.js").Store} store */
  constructor(store) {
    this.list = byId("events");
    this.untold = [];
    this.toldAt = 0;
    this.isFirst = true;
    store.on("pulse", () => this.add(store.pulse.events));
  }

  /** The next pulse is the first of a stream: it has the last events once more. */
  beginAnew() {
    this.isFirst = true;
  }

  add(events) {
    if (this.isFirst) this.list.replaceChildren();
    for (const event of events) this.list.prepend(row(event, this.folded(event)));
    while (this.list.children.length > KEPT) this.list.lastElementChild.remove();
    byId("no-events").hidden = this.list.children.length > 0;
    if (!this.isFirst) this.untold.push(...events.map((event) => event.text));
    this.isFirst = false; // what a first pulse brings is old
    this.tell();
  }

  /** Take away what has just been said in the same words; return how often it was said. */
  folded({ kind, text }) {
    const same = [...this.list.children].slice(0, FOLDED_AMONG).find(
      (each) => each.dataset.kind === kind && each.querySelector(".what").textContent === text,
    );
    same?.remove();
    return 1 + Number(same?.dataset.times ?? 0);
  }

  /** A few at a time: nobody can listen to a hundred. */
  tell() {
    if (!this.untold.length || performance.now() - this.toldAt < TOLD_EVERY_MS) return;
    this.toldAt = performance.now();
    const more = this.untold.length - TOLD_MOST;
    const rest = more > 0 ? `; and ${more} more` : "";
    byId("told").textContent = this.untold.slice(0, TOLD_MOST).join("; ") + rest;
    this.untold = [];
  }
}

function row({ at_ms: at, kind, text }, times) {
  const [sign, tone] = SIGNS[kind] ?? ["·", ""];
  return el(
    "li",
    { class: tone, "data-kind": kind, "data-times": times },
    el("time", { text: clock(at) }),
    el("span", { class: "sign", "aria-hidden": "true", text: sign }),
    el("span", { class: "kind", text: kind.replaceAll("_", " ") }),
    el("span", { class: "what", text }),
    el("small", { text: times > 1 ? `${times} times` : "" }),
  );
}
