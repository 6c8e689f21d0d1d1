/**
 * What if: a publisher, subscribers, and overloaded and dead links are chosen on the drawing; the
 * gateway says where a notification would go under each algorithm.
 */
import { ask } from "./api.js";
import { AttributesField } from "./attributes_field.js";
import { byId, el, settled, svg } from "./dom.js";
import { direction } from "./store.js";
import { Ways } from "./ways.js";

const LINK_PICKS = new Set(["overloaded", "cut"]);
const SUBSCRIBERS_MOST = 200;

export class WhatIf {
  /**
   * @param {import("./store.js").Store} store
   * @param {import("./drawing.js").Drawing} drawing
   */
  constructor(store, drawing) {
    this.store = store;
    this.drawing = drawing;
    this.ways = new Ways(byId("ways"));
    this.attributes = new AttributesField(byId("whatif-attributes"), () => this.ask());
    this.soon = settled(() => this.ask(), 150);
    this.isAsking = this.isOld = false;
    this.empty();
    byId("whatif-now").addEventListener("click", () => this.takeNow());
    byId("whatif-clear").addEventListener("click", () => this.clear());
    for (const radio of document.getElementsByName("pick")) {
      radio.addEventListener("change", () => { this.from = ""; this.show(); });
    }
    store.on("plan", () => this.clear());
  }

  empty() {
    this.publisher = "";
    /** The subscribers' filters, by broker. @type {Map<string, string>} */
    this.subscribers = new Map();
    this.dead = new Set();
    /** Directions, as "from>to". @type {Set<string>} */
    this.overloaded = new Set();
    this.cut = new Set();
    this.from = "";
  }

  clear() {
    this.empty();
    const { plan } = this.store;
    if (!plan) return; // a gateway that knows only addresses has none
    const first = plan.brokers[0]?.name ?? "";
    const last = plan.brokers.filter((each) => each.region === plan.regions.at(-1));
    this.publisher = first;
    this.subscribers = new Map(last.map((each) => [each.name, "TRUE"]));
    this.subscribers.delete(first);
    this.changed();
  }

  /** Take over what is overloaded and dead just now. */
  takeNow() {
    const { plan, pulse } = this.store;
    if (!plan || !pulse) return;
    this.dead = new Set(Object.keys(pulse.brokers).filter((name) => !pulse.brokers[name].up));
    this.dead.delete(this.publisher);
    const isOverloaded = (name) => pulse.links[name].overloaded;
    this.overloaded = new Set(Object.keys(pulse.links).filter(isOverloaded));
    this.cut.clear();
    this.changed();
  }

  get pick() {
    return document.querySelector("input[name=pick]:checked").value;
  }

  /** A broker or a link of the drawing was chosen. */
  activated(what) {
    if (what.kind === "link") this.chooseLink(what.ends);
    else if (LINK_PICKS.has(this.pick)) this.chooseEnd(what.name);
    else this.chooseBroker(what.name);
    this.changed();
  }

  chooseBroker(name) {
    if (this.pick === "publisher") {
      this.publisher = name;
      this.dead.delete(name);
    } else if (this.pick === "dead") {
      if (name !== this.publisher) toggle(this.dead, name);
    } else if (!this.subscribers.delete(name) && this.subscribers.size < SUBSCRIBERS_MOST) {
      this.subscribers.set(name, "TRUE");
    }
  }

  /** A link by its two ends, one after the other. */
  chooseEnd(name) {
    const isLink = this.store.plan.links.some(
      ({ ends }) => ends.includes(this.from) && ends.includes(name) && this.from !== name,
    );
    if (!isLink) {
      this.from = this.from === name ? "" : name;
      return;
    }
    toggle(this.pick === "cut" ? this.cut : this.overloaded, direction(this.from, name));
    this.from = "";
  }

  /** A click on a link: overloaded this way, that way, both ways, no more. */
  chooseLink([one, other]) {
    const [forth, back] = [direction(one, other), direction(other, one)];
    if (this.pick === "cut") {
      const wasCut = this.cut.delete(forth) || this.cut.delete(back);
      if (!wasCut) this.cut.add(forth);
      return;
    }
    const next = [[forth], [back], [forth, back], []];
    const now = (this.overloaded.has(forth) ? 1 : 0) + (this.overloaded.has(back) ? 2 : 0);
    this.overloaded.delete(forth);
    this.overloaded.delete(back);
    for (const each of next[now]) this.overloaded.add(each);
  }

  changed() {
    for (const each of this.overloaded) {
      if (this.isDown(each)) this.overloaded.delete(each); // nothing can wait for it
    }
    this.show();
    this.soon();
  }

  isDown(name) {
    const [one, other] = name.split(">");
    return [one, other].some((each) => this.dead.has(each))
      || this.cut.has(name) || this.cut.has(direction(other, one));
  }

  /** Show or hide what was chosen, as the tab is shown or not. */
  setShown(isShown) {
    this.isShown = isShown;
    byId("ways").hidden = !isShown;
    document.body.classList.toggle("asks", isShown);
    this.drawing.root.classList.toggle("whatif", isShown);
    if (!this.store.plan) return;
    this.show();
    if (isShown) this.soon();
  }

  show() {
    this.showMarks();
    const chips = (id, names, remove, extra = () => []) => byId(id).replaceChildren(
      ...[...names].map((name) => el("li", {}, name.replace(">", " → "), ...extra(name), el("button", {
        type: "button", class: "plain", "aria-label": `Remove ${name}`, text: "×",
        on: { click: () => { remove(name); this.changed(); } },
      }))),
    );
    byId("chosen-publisher").textContent = this.publisher;
    chips("chosen-subscribers", this.subscribers.keys(), (name) => this.subscribers.delete(name), (name) => [
      el("input", {
        type: "text", value: this.subscribers.get(name), "aria-label": `Filter of the subscriber at ${name}`,
        on: { change: (event) => { this.subscribers.set(name, event.target.value); this.soon(); } },
      }),
    ]);
    chips("chosen-overloaded", this.overloaded, (name) => this.overloaded.delete(name));
    chips("chosen-dead", this.dead, (name) => this.dead.delete(name));
    chips("chosen-cut", this.cut, (name) => this.cut.delete(name));
    byId("whatif-said").textContent = this.from
      ? `From ${this.from}: now choose the broker at the other end.` : "";
  }

  /** Mark on the drawing what was chosen. */
  showMarks() {
    const { root, layout } = this.drawing;
    for (const old of root.querySelectorAll(".choices")) old.remove();
    if (!this.isShown || !layout) return;
    const [below, layer] = [svg("g", { class: "choices" }), svg("g", { class: "choices" })];
    for (const [names, kind] of [[this.overloaded, "overloaded"], [this.cut, "cut"]]) {
      for (const name of names) {
        const { d, mark } = layout.way(...name.split(">"));
        below.append(svg("path", { d, class: kind }));
        layer.append(svg("text", {
          x: mark.x, y: mark.y + 4, class: `badge ${kind}`, text: kind === "cut" ? "✕" : "▲",
        }));
      }
    }
    const box = (name, kind, text) => {
      const { x, y } = layout.place(name);
      const [w, h] = [layout.nodeWidth, layout.nodeHeight];
      layer.append(
        svg("rect", { x: x - w / 2, y: y - h / 2, width: w, height: h, rx: 5, class: kind }),
        svg("text", { x: x - w / 2 - 2, y: y - h / 2 + 2, class: `badge ${kind}`, text }),
      );
    };
    for (const name of this.subscribers.keys()) box(name, "subscriber", "S");
    for (const name of this.dead) box(name, "dead", "✕");
    if (this.publisher) box(this.publisher, "publisher", "P");
    if (this.from) box(this.from, "from", "");
    this.drawing.layers.nodes.before(below);
    root.append(layer);
  }

  /** Ask one question at a time: what was chosen meanwhile is asked after the answer. */
  async ask() {
    if (this.isAsking) {
      this.isOld = true;
      return;
    }
    this.isAsking = true;
    try {
      do {
        this.isOld = false;
        await this.askOnce();
      } while (this.isOld);
    } finally {
      this.isAsking = false;
    }
  }

  async askOnce() {
    const { json } = this.attributes;
    if (!this.isShown || json === null || !this.publisher) return;
    const pairs = (names) => [...names].map((name) => name.split(">"));
    const question = JSON.stringify({
      publish: this.publisher,
      subscribers: [...this.subscribers].map(([broker, filter]) => ({ name: `S at ${broker}`, broker, filter })),
      overloaded: pairs(this.overloaded), dead: [...this.dead], cut: pairs(this.cut),
    });
    this.ways.wait();
    try {
      const found = await ask("/routes/explain", `${question.slice(0, -1)},"attributes":${json}}`);
      if (!this.isOld) this.ways.show(found.algorithms, this);
    } catch (problem) {
      if (!this.isOld) this.ways.refuse(problem.message);
    }
  }
}

function toggle(set, name) {
  if (!set.delete(name)) set.add(name);
}
