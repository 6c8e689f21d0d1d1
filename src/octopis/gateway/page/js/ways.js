/** The ways under each algorithm, side by side: a small drawing, sums, and each hop with its reason. */
import { el, svg } from "./dom.js";
import { plural } from "./format.js";
import { labelOf } from "./geometry.js";

const ORDER = ["bid", "snr", "dnr", "tnr"];
const NAMES = {
  bid: "a copy for each host", snr: "static routing", dnr: "the paper's dynamic routing",
  tnr: "target routing",
};
const NAMED_MOST = 30;

export class Ways {
  constructor(root) {
    this.root = root;
    this.list = root.querySelector(".cards");
    this.said = root.querySelector(".said");
  }

  show(answers, question) {
    this.said.textContent = "";
    this.said.classList.remove("wrong");
    const cards = ORDER.filter((name) => answers[name]).map((name) => card(name, answers[name], question));
    this.list.replaceChildren(...cards);
  }

  /** Say that an answer is on its way, where none is shown: the first one takes a moment. */
  wait() {
    if (this.list.children.length) return;
    this.said.textContent = "Finding the ways…";
    this.said.classList.remove("wrong");
  }

  refuse(reason) {
    this.said.textContent = `✕ ${reason}`;
    this.said.classList.add("wrong");
    this.list.replaceChildren();
  }
}

function card(name, answer, question) {
  const reached = answer.deliveries.length;
  const lost = answer.lost.length;
  const around = answer.hops.filter((hop) => kindOf(hop) !== "way").length;
  const sums = [
    plural(answer.messages, "message"), `${reached} reached`, around ? `${around} around` : "",
    answer.duplicates ? plural(answer.duplicates, "duplicate") : "",
  ];
  return el(
    "article",
    { class: "card", "data-algorithm": name, "aria-label": `${name.toUpperCase()}: ${sums.filter(Boolean).join(", ")}` },
    el("h3", {}, name.toUpperCase(), " ", el("small", { text: NAMES[name] })),
    el("p", { class: "sum" }, sums.filter(Boolean).join(" · "),
      lost ? el("b", { class: "bad", text: ` · ✕ ${lost} lost` }) : null),
    picture(answer, question),
    lost ? el("p", { class: "bad", text: `Not reached: ${answer.lost.join(", ")}` }) : null,
    el("details", {}, el("summary", { text: `Each hop, with its reason (${answer.hops.length})` }), hops(answer)),
  );
}

/** A word for how a hop is drawn. */
function kindOf(hop) {
  if (/fault/.test(hop.reason)) return "fault";
  return /overload|^II$|^III$/.test(hop.reason) ? "overload" : "way";
}

function picture(answer, { drawing, publisher, subscribers, dead, overloaded, cut }) {
  const { layout, plan } = drawing;
  const root = svg("svg", {
    viewBox: `0 0 ${layout.width} ${layout.height}`, class: "ways-picture", role: "img",
    "aria-label": answer.hops.map((hop) => `${hop.from} to ${hop.to}`).join(", ") || "no hops",
  });
  for (const { ends } of plan.links) {
    root.append(svg("path", { class: "faint", d: layout.way(ends[0], ends[1], 0).d }));
  }
  for (const [names, kind] of [[overloaded, "overloaded"], [cut, "cut"]]) {
    for (const name of names) root.append(svg("path", { class: kind, d: layout.way(...name.split(">")).d }));
  }
  for (const hop of answer.hops) {
    const { d, mark } = layout.way(hop.from, hop.to);
    root.append(svg("path", { class: `hop ${kindOf(hop)}`, d }), arrow(layout, hop, mark));
  }
  const lost = new Set(answer.lost);
  const isNamed = plan.brokers.length <= NAMED_MOST;
  for (const broker of plan.brokers) {
    const { x, y } = layout.place(broker.name);
    const [w, h] = isNamed ? [layout.nodeWidth, layout.nodeHeight] : [22, 22];
    const classes = [
      "spot", broker.name === publisher ? "publisher" : "", subscribers.has(broker.name) ? "subscriber" : "",
      dead.has(broker.name) ? "dead" : "", lost.has(`S at ${broker.name}`) ? "lost" : "",
    ].filter(Boolean).join(" ");
    root.append(svg("rect", { class: classes, x: x - w / 2, y: y - h / 2, width: w, height: h, rx: 5 }));
    const text = dead.has(broker.name) ? "✕" : labelOf(broker);
    if (isNamed) root.append(svg("text", { class: "label", x, y: y + 5, text }));
  }
  return root;
}

/** The head of an arrow in the middle of a hop. */
function arrow(layout, hop, mark) {
  const [start, end] = [layout.place(hop.from), layout.place(hop.to)];
  const angle = (Math.atan2(end.y - start.y, end.x - start.x) * 180) / Math.PI;
  return svg("path", {
    class: `head ${kindOf(hop)}`, d: "M-5 -6L6 0L-5 6Z",
    transform: `translate(${mark.x} ${mark.y}) rotate(${angle})`,
  });
}

function hops({ hops: found }) {
  return el("ol", { class: "hops" }, ...found.map((hop) => el(
    "li",
    { class: kindOf(hop) },
    el("b", { text: `${hop.from} → ${hop.to}` }),
    ` ${hop.words}`,
    hop.carries ? el("small", { text: ` (for ${hop.carries})` }) : null,
  )));
}
