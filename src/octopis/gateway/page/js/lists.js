/** Durable subscriptions with their lag, slow subscribers, and all links that are not well. */
import { byId, el } from "./dom.js";
import { bytes, count, rate } from "./format.js";
import { stateOf } from "./store.js";

const ROWS_MOST = 100;

export class Lists {
  /** @param {import("./store.js").Store} store */
  constructor(store) {
    this.store = store;
    store.on("pulse", () => this.update());
  }

  update() {
    if (byId("panel-lists").hidden || !this.store.pulse) return;
    const { durables, slow } = this.store.pulse;
    const byLag = durables.toSorted((one, other) => other.lag - one.lag);
    fill("durables", byLag, (each) => [
      each.name, each.broker, count(each.lag), count(each.acknowledged), bytes(each.bytes),
      each.suspended ? "suspended" : "",
    ]);
    const byQueue = slow.toSorted((one, other) => other.queue - one.queue);
    fill("slow", byQueue, (each) => [each.client, each.broker, count(each.queue), count(each.dropped)]);
    fill("links", this.troubled(), (each) => each);
  }

  /** The links that are down or overloaded, or where most waits. */
  troubled() {
    const { plan, pulse } = this.store;
    const rank = { down: 2, overloaded: 3, full: 1, busy: 1 };
    return Object.entries(pulse.links)
      .map(([name, link]) => ({ name, link, state: stateOf(link, plan?.threshold) }))
      .filter(({ state }) => rank[state])
      .sort((one, other) => rank[other.state] - rank[one.state] || other.link.queue - one.link.queue)
      .map(({ name, link, state }) => [
        name.replace(">", " → "), state, count(link.queue), rate(link.rate_s),
        rate(link.around_overload_s + link.around_fault_s),
      ]);
  }
}

/** Show rows in a table; cells that are there are only changed. */
function fill(name, items, cellsOf) {
  const body = byId(`${name}-rows`);
  const rows = items.slice(0, ROWS_MOST).map(cellsOf);
  byId(`${name}-none`).hidden = rows.length > 0;
  byId(`${name}-table`).hidden = rows.length === 0;
  while (body.children.length > rows.length) body.lastElementChild.remove();
  rows.forEach((cells, at) => {
    const row = body.children[at] ?? body.appendChild(el("tr", {}, ...cells.map(() => el("td"))));
    cells.forEach((text, column) => {
      const cell = row.children[column];
      if (cell.textContent !== text) cell.textContent = text;
    });
  });
}
