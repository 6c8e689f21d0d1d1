/**
 * The overlay as its structure. Everything is built once for a plan; pulses only change attributes
 * that have changed.
 */
import { byId, setAttribute, setText, svg } from "./dom.js";
import { count, shortened } from "./format.js";
import { Layout, labelOf } from "./geometry.js";
import { KEPT_MS, direction, stateOf } from "./store.js";

/** More ways around than these stand still: moving them all would take the browser's time. */
const MOVING_MOST = 24;

/**
 * @typedef {object} Way One direction of a link in the drawing.
 * @property {string} name
 * @property {SVGElement} flow
 * @property {{x: number, y: number}} mark
 * @property {string} d
 * @property {string} state
 * @property {SVGElement | null} around
 * @property {SVGElement | null} badge
 * @property {number} aroundUntil A way around stays visible as long as an overload does.
 */

export class Drawing {
  /** @param {(what: import("./store.js").Selection) => void} activated */
  constructor(activated) {
    this.activated = activated;
    this.root = byId("drawing");
    /** @type {Map<string, Way>} */
    this.ways = new Map();
    /** @type {Map<string, any>} */
    this.nodes = new Map();
    /** @type {Map<string, SVGElement>} */
    this.links = new Map();
  }

  build(plan) {
    this.plan = plan;
    this.layout = new Layout(plan);
    this.ways.clear();
    this.nodes.clear();
    this.links.clear();
    const { width, height } = this.layout;
    this.root.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.layers = Object.fromEntries(
      ["grid", "links", "arounds", "nodes", "badges"].map((name) => [name, svg("g", { class: name })]),
    );
    for (const link of plan.links) this.addLink(link);
    for (const broker of plan.brokers) this.addBroker(broker);
    this.addNames();
    this.root.replaceChildren(...Object.values(this.layers));
  }

  addNames() {
    const { layout, plan } = this;
    for (const region of plan.regions) {
      const x = layout.left + layout.columns.get(region) * layout.columnWidth;
      const name = svg("text", { x, y: 14, class: "name", text: shortened(region, 12) });
      this.layers.grid.append(name);
      name.append(svg("title", { text: `region ${region}` }));
    }
    for (const cluster of plan.clusters) {
      const y = layout.top + layout.rows.get(cluster) * layout.rowHeight;
      this.layers.grid.append(
        svg("line", { x1: 22, x2: layout.width - 6, y1: y, y2: y, class: "row" }),
        svg("text", { x: 10, y: y + 4, class: "name", text: cluster }),
      );
    }
  }

  addLink({ ends, kind }) {
    const [one, other] = ends;
    const group = svg("g", { class: "link", on: { click: () => this.activated({ kind: "link", ends }) } });
    group.append(svg("title", { text: `${kind} ${one} – ${other}` }));
    group.append(svg("path", { class: "hit", d: this.layout.way(one, other, 0).d }));
    for (const [from, to] of [[one, other], [other, one]]) {
      const { d, mark } = this.layout.way(from, to);
      const name = direction(from, to);
      const flow = svg("path", { class: "flow unknown", d, "data-way": name });
      group.append(flow);
      this.ways.set(name, {
        name, flow, mark, d, state: "unknown", around: null, badge: null, aroundUntil: 0,
      });
    }
    this.links.set(String(ends), group);
    this.layers.links.append(group);
  }

  addBroker(broker) {
    const { nodeWidth: w, nodeHeight: h } = this.layout;
    const { x, y } = this.layout.place(broker.name);
    const state = svg("text", { class: "state", y: h / 2 + 10 });
    const badge = svg("text", { class: "clients", x: w / 2 - 1, y: -h / 2 - 3 });
    const group = svg(
      "g",
      {
        class: "node", transform: `translate(${x} ${y})`, role: "button", tabindex: -1,
        "aria-label": broker.name, "data-broker": broker.name,
        on: { click: () => this.activated({ kind: "broker", name: broker.name }) },
      },
      svg("title", { text: broker.name }),
      svg("rect", { class: "focus", x: -w / 2 - 5, y: -h / 2 - 5, width: w + 10, height: h + 10, rx: 9 }),
      svg("rect", { class: "box", x: -w / 2, y: -h / 2, width: w, height: h, rx: 5 }),
      svg("text", { class: "label", y: 4.5, text: labelOf(broker) }),
      state,
      badge,
    );
    this.nodes.set(broker.name, { group, state, badge });
    this.layers.nodes.append(group);
  }

  /** Show a pulse. */
  update(pulse) {
    if (!this.plan) return; // a gateway that knows only addresses has none
    const now = performance.now();
    for (const [name, broker] of Object.entries(pulse.brokers)) this.updateBroker(name, broker);
    for (const [name, way] of this.ways) this.updateWay(way, pulse.links[name], now);
    const moving = [...this.ways.values()].filter((way) => way.aroundUntil > now).length;
    this.layers.arounds.classList.toggle("many", moving > MOVING_MOST);
  }

  updateBroker(name, broker) {
    const node = this.nodes.get(name);
    if (!node) return;
    const slow = broker.up && broker.slow_clients > 0;
    let word = broker.up ? "up" : "dead";
    if (slow) word = "slow";
    const text = { up: "", dead: "✕ dead", slow: `◔ ${broker.slow_clients} slow` }[word];
    if (node.word !== word) {
      node.word = word;
      node.group.classList.toggle("dead", !broker.up);
      node.group.classList.toggle("slow", slow);
      const told = { up: "", dead: ", dead", slow: ", with slow clients" }[word];
      node.group.setAttribute("aria-label", `broker ${name}${told}`);
    }
    setText(node.state, text);
    setText(node.badge, broker.up && broker.clients ? `●${count(broker.clients)}` : "");
  }

  updateWay(way, link, now) {
    const state = stateOf(link, this.plan.threshold);
    if (way.state !== state) {
      way.state = state;
      way.flow.setAttribute("class", `flow ${state}`);
    }
    setAttribute(way.flow, "stroke-width", link?.up ? widthOf(link.rate_s) : "1.2");
    this.updateBadge(way, state, link);
    this.updateAround(way, link, now);
  }

  updateBadge(way, state, link) {
    const text = { overloaded: `▲${count(link?.queue ?? 0)}`, down: "✕" }[state] ?? "";
    if (!text && !way.badge) return;
    if (!way.badge) {
      way.badge = svg("text", { x: way.mark.x, y: way.mark.y + 4 });
      this.layers.badges.append(way.badge);
    }
    setAttribute(way.badge, "class", `badge ${state}`);
    setText(way.badge, text);
  }

  updateAround(way, link, now) {
    const [overload, fault] = [link?.around_overload_s ?? 0, link?.around_fault_s ?? 0];
    if (overload > 0 || fault > 0) {
      way.aroundUntil = now + KEPT_MS;
      if (!way.around) {
        way.around = svg("path", { d: way.d, "data-way": way.name });
        this.layers.arounds.append(way.around);
      }
      setAttribute(way.around, "class", `around ${fault > overload ? "fault" : "overload"}`);
    } else if (way.around && now > way.aroundUntil) {
      setAttribute(way.around, "class", "around none");
    }
  }

  /** Show what is selected. */
  select(selection) {
    for (const group of this.root.querySelectorAll(".selected")) group.classList.remove("selected");
    const found = selection?.kind === "link"
      ? this.links.get(String(selection.ends)) : this.nodes.get(selection?.name)?.group;
    found?.classList.add("selected");
  }
}

/** The width of a link's direction: it grows with the logarithm of its rate, in steps. */
export function widthOf(rate) {
  return String(rate > 0 ? Math.min(5.5, 1.2 + Math.round(2.4 * Math.log10(1 + rate)) / 2) : 1.2);
}
