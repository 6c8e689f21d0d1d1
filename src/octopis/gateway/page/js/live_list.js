/**
 * What a filter matches, as it comes: a bounded list that is drawn a few times a second however
 * fast notifications come.
 */
import { clock, parse, plural, shortened, value } from "./format.js";
import { el, setText } from "./dom.js";
import { follow } from "./sse.js";

const DRAWN_EVERY_MS = 250;
const VALUE_MOST = 60;

export class LiveList {
  /**
   * @param {{list: HTMLElement, said: HTMLElement, kept: number, stopped?: () => void,
   *   chosen?: (attributes: object) => void}} options
   */
  constructor(options) {
    this.options = options;
    this.stop = null;
    this.waiting = [];
    this.seen = 0;
    /** Why the gateway has ended the stream, where it has said so. */
    this.why = "";
  }

  get isOpen() {
    return this.stop !== null;
  }

  /** Follow a filter, in place of the one before. */
  open(filter, dialect = "sql") {
    this.close();
    this.seen = 0;
    this.options.list.replaceChildren();
    this.say("connecting…");
    const query = new URLSearchParams({ filter, dialect });
    this.stop = follow(`/notifications?${query}`, {
      silenceMs: 45_000,
      opened: () => {
        this.why = "";
        this.say("listening: nothing has come yet");
      },
      heard: (event) => this.heard(event),
      broken: (reason) => this.say(`✕ ${this.why || reason}; trying again`),
      refused: (problem) => {
        this.close();
        this.say(`✕ ${problem.message}`);
        this.options.stopped?.();
      },
    });
    this.timer = setInterval(() => this.draw(), DRAWN_EVERY_MS);
  }

  close() {
    this.stop?.();
    this.stop = null;
    clearInterval(this.timer);
    this.waiting = [];
  }

  heard({ kind, data }) {
    const found = parse(data);
    if (kind === "end") {
      this.why = found.reason;
      return;
    }
    if (kind !== "gap") this.seen++;
    this.waiting.push(kind === "gap" ? gapRow(found) : { found });
    if (this.waiting.length > this.options.kept) this.waiting.shift();
  }

  draw() {
    if (!this.waiting.length) return;
    const rows = this.waiting.map((each) => (each.found ? this.row(each.found) : each));
    this.waiting = [];
    const { list, kept } = this.options;
    list.prepend(...rows.reverse());
    while (list.children.length > kept) list.lastElementChild.remove();
    this.say(`listening: ${plural(this.seen, "notification")}`);
  }

  row(found) {
    const words = Object.entries(found.attributes).flatMap(([name, each]) => [
      el("span", { title: long(value(each)) }, el("i", { text: name }),
        `\u00a0=\u00a0${shortened(value(each), VALUE_MOST)}`), " ",
    ]);
    const size = found.payload ? Math.floor((found.payload.length * 3) / 4) : 0;
    const origin = `${found.publisher} / ${found.sequence}`;
    const { chosen } = this.options;
    return el(
      "li",
      {},
      el("time", { text: clock(Date.now()) }),
      el("span", { class: "what" }, ...words, size ? el("small", { text: `+ ${size} bytes` }) : null),
      el("small", { class: "from", text: origin }),
      chosen ? el("button", {
        type: "button", class: "plain", text: "explain", on: { click: () => chosen(found.attributes) },
      }) : null,
    );
  }

  say(text) {
    setText(this.options.said, text);
  }
}

/** What is shortened can be read whole by pointing at it. */
const long = (text) => (text.length > VALUE_MOST ? text : null);

function gapRow(gap) {
  const missing = gap.dropped ? `${plural(gap.dropped, "notification")} missing: ` : "missing: ";
  return el("li", { class: "bad", text: `⌫ ${missing}${gap.reason ?? ""}` });
}
