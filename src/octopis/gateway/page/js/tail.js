/** A live tail of a filter. */
import { byId } from "./dom.js";
import { FilterField } from "./filter_field.js";
import { LiveList } from "./live_list.js";

const KEPT = 200;

export class Tail {
  constructor() {
    this.filter = new FilterField(byId("tail-filter"));
    this.button = byId("tail-start");
    this.list = new LiveList({
      list: byId("tail"), said: byId("tail-said"), kept: KEPT, stopped: () => this.show(),
    });
    byId("tail-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.toggle();
    });
    byId("tail-clear").addEventListener("click", () => byId("tail").replaceChildren());
    byId("tail-filter").addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey) return;
      event.preventDefault();
      this.list.close();
      this.toggle();
    });
  }

  toggle() {
    if (this.list.isOpen) {
      this.list.close();
      this.list.say("stopped");
    } else if (this.filter.text) this.list.open(this.filter.text);
    else this.list.say("✕ write a filter first; TRUE matches everything");
    this.show();
  }

  show() {
    this.button.textContent = this.list.isOpen ? "Stop" : "Follow";
  }
}
