/** Small uPlot charts of the last minutes, in the colours of the page. */
import { colourOf, el } from "./dom.js";
import { count } from "./format.js";

const HEIGHT = 118;

/** @typedef {{label: string, colour: string, dash?: number[], at?: (n: number) => string}} Line */

export class Chart {
  /** @param {string} title @param {Line[]} lines */
  constructor(title, lines) {
    this.title = title;
    this.lines = lines;
    this.root = el("figure", { class: "chart" }, el("figcaption", { text: title }));
    this.plot = null;
    this.data = [[], ...lines.map(() => [])];
    this.watch = new ResizeObserver(() => this.fit());
    this.watch.observe(this.root);
  }

  show(data) {
    this.data = data;
    if (!this.plot) this.draw();
    else this.plot.setData(data);
  }

  /** Draw anew: the page has other colours now. */
  draw() {
    if (!this.root.clientWidth) return;
    this.plot?.destroy();
    const axis = {
      stroke: colourOf("quiet"), grid: { stroke: colourOf("line"), width: 1 },
      ticks: { show: false }, font: "10px system-ui, sans-serif",
    };
    this.plot = new window.uPlot({
      width: this.root.clientWidth,
      height: HEIGHT,
      padding: [6, 6, 0, 0],
      cursor: { points: { size: 5 }, drag: { x: false, y: false } },
      legend: { live: true },
      scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), 1.1 * (high || 1)] } },
      axes: [
        { ...axis, size: 18, space: 70, values: (_, ticks) => ticks.map(minute) },
        { ...axis, size: 38, space: 26, values: (_, ticks) => ticks.map(tick) },
      ],
      series: [
        { value: (_, at) => (at === null ? "now" : minute(at)), label: "at" },
        ...this.lines.map((line) => ({
          label: line.label, stroke: colourOf(line.colour), width: 1.5, dash: line.dash,
          points: { show: false }, spanGaps: false,
          value: (plot, number, row, at) => shown(at === null ? plot.data[row].at(-1) : number),
        })),
      ],
    }, this.data, this.root);
  }

  fit() {
    const width = this.root.clientWidth;
    if (!width) return;
    if (!this.plot) this.draw();
    else if (this.plot.width !== width) this.plot.setSize({ width, height: HEIGHT });
  }

  end() {
    this.watch.disconnect();
    this.plot?.destroy();
    this.plot = null;
  }
}

const minute = (seconds) => new Date(seconds * 1000).toLocaleTimeString("en-GB");

/** Where nobody points at the chart, the legend has the latest. */
const shown = (number) => (number === null || number === undefined ? "–" : tick(number));

const tick = (number) =>
  (number !== 0 && Math.abs(number) < 10 ? String(Math.round(number * 100) / 100) : count(number));
