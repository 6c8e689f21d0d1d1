/** Tabs, as the ARIA practices have them: arrows move between them, one is in the order of Tab. */
import { byId } from "./dom.js";

export class Tabs {
  /** @param {(name: string) => void} shown */
  constructor(shown) {
    this.shown = shown;
    this.list = byId("tabs");
    this.tabs = /** @type {HTMLElement[]} */ ([...this.list.querySelectorAll("[role=tab]")]);
    for (const tab of this.tabs) tab.addEventListener("click", () => this.show(tab.dataset.tab));
    this.list.addEventListener("keydown", (event) => this.pressed(event));
    this.show(this.tabs[0].dataset.tab);
  }

  show(name) {
    this.current = name;
    for (const tab of this.tabs) {
      const isShown = tab.dataset.tab === name;
      tab.setAttribute("aria-selected", String(isShown));
      tab.tabIndex = isShown ? 0 : -1;
      byId(`panel-${tab.dataset.tab}`).hidden = !isShown;
    }
    this.shown(name);
  }

  pressed(event) {
    const at = this.tabs.findIndex((tab) => tab === document.activeElement);
    const steps = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: this.tabs.length - 1 };
    if (!(event.key in steps) || at < 0) return;
    event.preventDefault();
    const next = this.tabs[(steps[event.key] + this.tabs.length) % this.tabs.length];
    this.show(next.dataset.tab);
    next.focus();
  }
}
