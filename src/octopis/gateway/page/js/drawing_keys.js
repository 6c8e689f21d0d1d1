/**
 * The drawing by keyboard: arrows go from broker to broker, Enter chooses one, + and - change the
 * size. Only one broker is in the order of the Tab key, as in a grid.
 */
import { byId } from "./dom.js";

const SIZES = [0.5, 0.7, 0.85, 1, 1.25, 1.6, 2.2];
const SMALLEST_FIT = 0.55;
const LARGEST_FIT = 1.4;

export class DrawingKeys {
  /** @param {import("./drawing.js").Drawing} drawing */
  constructor(drawing) {
    this.drawing = drawing;
    this.frame = byId("drawing-frame");
    this.size = 0; // 0: as wide as its place
    drawing.root.addEventListener("keydown", (event) => this.pressed(event));
    drawing.root.addEventListener("focusin", (event) => {
      const group = event.target.closest?.("[data-broker]");
      if (group) this.moveTo(group.dataset.broker, false);
    });
    byId("larger").addEventListener("click", () => this.step(1));
    byId("smaller").addEventListener("click", () => this.step(-1));
    byId("fit").addEventListener("click", () => this.resize(0));
    new ResizeObserver(() => this.resize(this.size)).observe(this.frame);
  }

  built() {
    this.current = "";
    const first = this.drawing.plan.brokers[0];
    if (first) this.moveTo(first.name, false);
    this.resize(this.size);
  }

  pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const steps = {
      ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1],
    };
    const step = steps[event.key];
    if (step) this.go(step);
    else if (event.key === "Enter" || event.key === " ") {
      this.drawing.activated({ kind: "broker", name: this.current });
    } else if (event.key === "+") this.step(1);
    else if (event.key === "-") this.step(-1);
    else return;
    event.preventDefault();
  }

  go([right, down]) {
    const { plan } = this.drawing;
    const here = plan.brokers.find((each) => each.name === this.current);
    if (!here) return;
    const region = plan.regions[plan.regions.indexOf(here.region) + right];
    const cluster = plan.clusters[plan.clusters.indexOf(here.cluster) + down];
    const next = plan.brokers.find((each) => each.region === region && each.cluster === cluster);
    if (next) this.moveTo(next.name, true);
  }

  /** Let one broker be in the order of the Tab key, and perhaps go there. */
  moveTo(name, focuses) {
    this.drawing.nodes.get(this.current)?.group.setAttribute("tabindex", "-1");
    this.current = name;
    const { group } = this.drawing.nodes.get(name);
    group.setAttribute("tabindex", "0");
    if (focuses) group.focus();
  }

  step(by) {
    if (!this.drawing.layout) return; // there is no plan to draw
    const now = this.size || this.fitting();
    const larger = SIZES.filter((size) => size > now + 0.01);
    const smaller = SIZES.filter((size) => size < now - 0.01);
    const next = by > 0 ? larger[0] : smaller.at(-1);
    if (next) this.resize(next);
  }

  /** How large it is where it takes all of its place, and no more than that is readable. */
  fitting() {
    const room = this.frame.clientWidth / this.drawing.layout.width;
    return Math.max(SMALLEST_FIT, Math.min(LARGEST_FIT, room));
  }

  resize(size) {
    this.size = size;
    if (!this.drawing.layout) return;
    const { width, height } = this.drawing.layout;
    const scale = size || this.fitting();
    this.drawing.root.setAttribute("width", String(Math.floor(width * scale)));
    this.drawing.root.setAttribute("height", String(Math.floor(height * scale)));
  }
}
