/** A link: both of its directions, and charts of one of them. */
import { Chart } from "./charts.js";
import { el, setText } from "./dom.js";
import { bytes, count, rate } from "./format.js";
import { LINK_FIELDS } from "./history.js";
import { direction, load, stateOf } from "./store.js";
import { table } from "./broker_details.js";

const ROWS = {
  is: (link, threshold) => stateOf(link, threshold),
  rate: (link) => rate(link.rate_s),
  queue: (link) => `${count(link.queue)} (${bytes(link.queue_bytes)})`,
  "of the threshold": (link, threshold) => `${Math.round(100 * load(link, threshold))}%`,
  "Q_in, Q_out": (link) => `${count(link.q_in)}, ${count(link.q_out)}`,
  "congestion element": (link) => link.element.toFixed(2),
  "sent around, overload": (link) => rate(link.around_overload_s),
  "sent around, fault": (link) => rate(link.around_fault_s),
};

export class LinkDetails {
  constructor(store, ends) {
    this.store = store;
    const [one, other] = ends;
    this.ways = [[one, other], [other, one]];
    this.chosen = 0;
    this.charts = [
      new Chart("queue, and what counts against the threshold", [
        { label: "queue", colour: "calm" },
        { label: "queue × element", colour: "full" },
        { label: "threshold", colour: "over", dash: [5, 4] }]),
      new Chart("Q_in and Q_out, messages in a window", [
        { label: "Q_in", colour: "calm" }, { label: "Q_out", colour: "accent" }]),
      new Chart("congestion element", [{ label: "element", colour: "full" }]),
      new Chart("messages per second", [
        { label: "all", colour: "calm" }, { label: "sent around", colour: "around", dash: [4, 3] }]),
    ];
    const kind = store.plan.links.find((link) => String(link.ends) === String(ends))?.kind;
    this.root = el(
      "div",
      { "data-details": ends.join(" ") },
      el("h3", {}, `${kind ?? "Link"} `, el("b", { text: `${one} – ${other}` })),
      this.table(),
      this.choice(),
      ...this.charts.map((chart) => chart.root),
    );
  }

  table() {
    this.cells = new Map();
    const body = el("tbody");
    for (const name of Object.keys(ROWS)) {
      const cells = this.ways.map(() => el("td"));
      this.cells.set(name, cells);
      body.append(el("tr", {}, el("th", { scope: "row", text: name }), ...cells));
    }
    return table("Both directions", ["", ...this.ways.map((way) => way.join(" → "))], body);
  }

  choice() {
    const radios = this.ways.map((way, number) => el(
      "label",
      {},
      el("input", {
        type: "radio", name: "way", checked: number === 0,
        on: { change: () => { this.chosen = number; this.update(); } },
      }),
      ` ${way.join(" → ")}`,
    ));
    return el("fieldset", { class: "choice" }, el("legend", { text: "Charts of" }), ...radios);
  }

  update() {
    const { pulse, plan, history } = this.store;
    this.ways.forEach(([from, to], number) => {
      const link = pulse.links[direction(from, to)];
      if (!link) return;
      for (const [name, cells] of this.cells) {
        setText(cells[number], ROWS[name](link, plan.threshold));
        if (name === "is") cells[number].className = `word ${stateOf(link, plan.threshold)}`;
      }
    });
    const [from, to] = this.ways[this.chosen];
    const [times, queue, qIn, qOut, element, all, around] = history.of(
      direction(from, to), LINK_FIELDS, ["queue", "q_in", "q_out", "element", "rate_s", "around_s"],
    );
    const counted = queue.map((length, at) => (length === null ? null : length * element[at]));
    this.charts[0].show([times, queue, counted, times.map(() => plan.threshold)]);
    this.charts[1].show([times, qIn, qOut]);
    this.charts[2].show([times, element]);
    this.charts[3].show([times, all, around]);
  }

  end() {
    for (const chart of this.charts) chart.end();
  }
}
