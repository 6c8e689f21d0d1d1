/**
 * Where everything stands: regions along x in the plan's order, clusters along y.
 *
 * Links of the tree run along a row, and arch over regions between; links between clusters run down
 * a column, and bow around clusters between. So each direction of a link is its curve, moved aside.
 */
import { shortened } from "./format.js";

export const LABEL_MOST = 9;
const ASIDE = 3;
const NODE_HEIGHT = 26;
const ARC_FIRST = 9;
const ARC_STEP = 7;
const LANE_FIRST = 4;
const LANE_STEP = 7;

/** @typedef {{x: number, y: number}} Point */

export class Layout {
  constructor(plan) {
    this.columns = new Map(plan.regions.map((region, place) => [region, place]));
    this.rows = new Map(plan.clusters.map((cluster, place) => [cluster, place]));
    const longest = Math.max(3, ...plan.brokers.map((each) => labelOf(each).length));
    this.nodeWidth = 7.4 * longest + 14;
    this.nodeHeight = NODE_HEIGHT;
    this.arcs = arcLevels(plan.tree.map((edge) => this.span(edge)));
    this.lanes = bowLanes(plan.clusters.length);
    const arcs = Math.max(0, ...this.arcs.values());
    const lanes = Math.max(0, ...[...this.lanes.values()].map(Math.abs));
    const bows = lanes ? LANE_FIRST + LANE_STEP * lanes : 0;
    this.columnWidth = this.nodeWidth + Math.max(56, 2 * bows + 22);
    this.rowHeight = NODE_HEIGHT + 44 + (arcs ? ARC_FIRST + ARC_STEP * arcs : 0);
    this.left = 46 + this.nodeWidth / 2 + bows;
    this.top = 46 + (arcs ? ARC_STEP * arcs : 0);
    this.width = this.left + (plan.regions.length - 1) * this.columnWidth
      + this.nodeWidth / 2 + bows + 16;
    this.height = this.top + (plan.clusters.length - 1) * this.rowHeight + NODE_HEIGHT / 2 + 18;
    /** @type {Map<string, any>} */
    this.brokers = new Map(plan.brokers.map((each) => [each.name, each]));
  }

  span([one, other]) {
    return [this.columns.get(one), this.columns.get(other)].sort((a, b) => a - b);
  }

  /** The middle of a broker. @returns {Point} */
  place(name) {
    const broker = this.brokers.get(name);
    return {
      x: this.left + this.columns.get(broker.region) * this.columnWidth,
      y: this.top + this.rows.get(broker.cluster) * this.rowHeight,
    };
  }

  /** The path of a direction of a link, and the point where a mark stands on it. */
  way(from, to, aside = ASIDE) {
    const [start, end] = [this.place(from), this.place(to)];
    return start.y === end.y
      ? this.along(start, end, aside) : this.down(start, end, aside);
  }

  along(start, end, aside) {
    const forth = Math.sign(end.x - start.x);
    const y = start.y + forth * aside;
    const columns = [start, end].map((point) => Math.round((point.x - this.left) / this.columnWidth));
    const level = this.arcs.get(String(columns.sort((a, b) => a - b))) ?? 0;
    if (!level) return straight({ x: start.x, y }, { x: end.x, y }, 0.5 + 0.08 * forth);
    const high = y - NODE_HEIGHT / 2 - ARC_FIRST - ARC_STEP * (level - 1);
    const step = forth * this.columnWidth;
    return {
      d: `M${start.x} ${y}C${start.x + 0.35 * step} ${y} ${start.x + 0.4 * step} ${high} `
        + `${start.x + 0.8 * step} ${high}L${end.x - 0.8 * step} ${high}`
        + `C${end.x - 0.4 * step} ${high} ${end.x - 0.35 * step} ${y} ${end.x} ${y}`,
      mark: { x: (start.x + end.x) / 2, y: high },
    };
  }

  down(start, end, aside) {
    const forth = Math.sign(end.y - start.y);
    const x = start.x - forth * aside;
    const rows = [start, end].map((point) => Math.round((point.y - this.top) / this.rowHeight));
    const lane = this.lanes.get(String(rows.sort((a, b) => a - b))) ?? 0;
    if (!lane) return straight({ x, y: start.y }, { x, y: end.y }, 0.5 + 0.12 * forth);
    const out = x + Math.sign(lane) * (this.nodeWidth / 2 + LANE_FIRST + LANE_STEP * Math.abs(lane));
    const step = forth * this.rowHeight;
    return {
      d: `M${x} ${start.y}C${x} ${start.y + 0.45 * step} ${out} ${start.y + 0.3 * step} `
        + `${out} ${start.y + 0.75 * step}L${out} ${end.y - 0.75 * step}`
        + `C${out} ${end.y - 0.3 * step} ${x} ${end.y - 0.45 * step} ${x} ${end.y}`,
      mark: { x: out, y: (start.y + end.y) / 2 + 5 * forth },
    };
  }
}

/** What stands in the box of a broker. */
export const labelOf = (broker) => `${shortened(broker.region, LABEL_MOST - 2)},${broker.cluster}`;

function straight(start, end, part) {
  return {
    d: `M${start.x} ${start.y}L${end.x} ${end.y}`,
    mark: { x: start.x + (end.x - start.x) * part, y: start.y + (end.y - start.y) * part },
  };
}

/** How high each link of a row arches, by "first,last": 0 is straight; level n passes over n - 1. */
export function arcLevels(spans) {
  const levels = new Map();
  const inside = ([left, right], [first, last]) => first <= left && right <= last;
  for (const span of spans.toSorted((one, other) => one[1] - one[0] - (other[1] - other[0]))) {
    const below = [...levels].filter(([key]) => inside(key.split(",").map(Number), span));
    const level = 1 + Math.max(0, ...below.map(([, height]) => height));
    levels.set(String(span), span[1] - span[0] === 1 ? 0 : level);
  }
  return levels;
}

/** The lane of each link of a column: 0 straight, 1, 2, ... to the right, -1, -2, ... to the left. */
export function bowLanes(rows) {
  const lanes = new Map();
  for (let length = 1; length < rows; length++) {
    for (let first = 0; first + length < rows; first++) {
      const last = first + length;
      const key = String([first, last]);
      if (length === 1) {
        lanes.set(key, 0);
        continue;
      }
      const [right, left] = [1, -1].map((side) => 1 + highest(lanes, side, first, last));
      lanes.set(key, right <= left ? right : -left);
    }
  }
  return lanes;
}

/** The outermost lane on a side that passes the same rows. */
function highest(lanes, side, first, last) {
  const overlapping = [...lanes].filter(([key, lane]) => {
    const [from, to] = key.split(",").map(Number);
    return Math.sign(lane) === side && from < last && first < to;
  });
  return Math.max(0, ...overlapping.map(([, lane]) => Math.abs(lane)));
}
