/** What there is to see of the selected broker or link: facts, and charts of the last minutes. */
import { byId, el } from "./dom.js";
import { BrokerDetails } from "./broker_details.js";
import { LinkDetails } from "./link_details.js";

export class Details {
  /** @param {import("./store.js").Store} store */
  constructor(store) {
    this.store = store;
    this.root = byId("details");
    this.shown = null;
    store.on("selection", () => this.begin());
    store.on("plan", () => this.begin());
    store.on("pulse", () => this.update());
  }

  begin() {
    const { plan, selection } = this.store;
    this.shown?.end();
    this.shown = null;
    if (!plan || !selection) {
      this.root.replaceChildren(el("p", { class: "hint", text:
        "Choose a broker or a link in the drawing: click it, or go there with Tab and the arrow "
        + "keys and press Enter." }));
      return;
    }
    this.shown = selection.kind === "broker"
      ? new BrokerDetails(this.store, selection.name) : new LinkDetails(this.store, selection.ends);
    this.root.replaceChildren(this.shown.root);
    this.update();
  }

  update() {
    if (this.shown && this.store.pulse && !byId("panel-details").hidden) this.shown.update();
  }

  /** The colours have changed. */
  redraw() {
    for (const chart of this.shown?.charts ?? []) chart.draw();
  }
}
