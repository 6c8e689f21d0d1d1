/** The page's head: which overlay, whether it is live, and its sums. */
import { byId, el, setText } from "./dom.js";
import { count, plural, rate } from "./format.js";
import { hasToken } from "./api.js";

const SUMS = ["brokers up", "published", "delivered", "queued", "overloaded", "around", "slow"];

export class Header {
  /** @param {import("./store.js").Store} store */
  constructor(store) {
    this.store = store;
    this.values = new Map();
    for (const name of SUMS) {
      const value = el("dd", { text: "–" });
      this.values.set(name, value);
      byId("sums").append(el("div", {}, el("dt", { text: name }), value));
    }
    store.on("plan", () => this.showPlan());
    store.on("pulse", () => this.showPulse());
    store.on("connection", () => this.showLive());
  }

  showPlan() {
    const { plan } = this.store;
    document.title = `${plan.name} – OctopiS`;
    setText(byId("overlay-name"), plan.name);
    const words = [plan.algorithm.toUpperCase(), plural(plan.brokers.length, "broker"),
      plural(plan.links.length, "link"), `threshold ${count(plan.threshold)}`,
      `delivery ${plan.level}`, plan.durable ? "durable" : "", plan.security ? "secured" : ""];
    setText(byId("overlay-facts"), words.filter(Boolean).join(" · "));
  }

  showPulse() {
    const brokers = Object.values(this.store.pulse.brokers);
    const links = Object.values(this.store.pulse.links);
    const sum = (items, field) => items.reduce((total, each) => total + (each[field] || 0), 0);
    const up = brokers.filter((each) => each.up).length;
    const overloaded = links.filter((each) => each.overloaded).length;
    const around = sum(links, "around_overload_s") + sum(links, "around_fault_s");
    const slow = sum(brokers, "slow_clients");
    this.put("brokers up", `${up}/${brokers.length}`, up < brokers.length);
    this.put("published", rate(sum(brokers, "published_s")));
    this.put("delivered", rate(sum(brokers, "delivered_s")));
    this.put("queued", count(sum(brokers, "queued")));
    this.put("overloaded", String(overloaded), overloaded > 0);
    this.put("around", rate(around), around > 0);
    this.put("slow", String(slow), slow > 0);
  }

  put(name, text, isBad = false) {
    const value = this.values.get(name);
    setText(value, text);
    value.classList.toggle("bad", isBad);
  }

  showLive() {
    const { isLive } = this.store;
    byId("live").classList.toggle("off", !isLive);
    setText(byId("live"), isLive ? "● live" : "○ not connected");
    document.body.classList.toggle("stale", !isLive);
    byId("forget-token").hidden = !hasToken();
  }
}
