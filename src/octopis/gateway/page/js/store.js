/** What the page knows: the overlay's plan, the last pulse, and what is selected. */

import { History } from "./history.js";

/**
 * Tells of "plan", "pulse", "selection" and "connection".
 * @typedef {{kind: "broker", name: string} | {kind: "link", ends: [string, string]}} Selection
 */
export class Store extends EventTarget {
  /** @type {any} */ plan = null;
  /** @type {any} */ pulse = null;
  /** @type {Selection | null} */ selection = null;
  history = new History();
  isLive = false;

  on(kind, work) {
    this.addEventListener(kind, work);
  }

  setPlan(plan) {
    this.plan = plan;
    this.tell("plan");
  }

  setPulse(pulse) {
    this.pulse = pulse;
    this.history.add(pulse);
    this.tell("pulse");
  }

  select(selection) {
    this.selection = selection;
    this.tell("selection");
  }

  setLive(isLive) {
    this.isLive = isLive;
    this.tell("connection");
  }

  tell(kind) {
    this.dispatchEvent(new Event(kind));
  }
}

/** The name of one direction of a link, as pulses have it. */
export const direction = (from, to) => `${from}>${to}`;

/** How near a queue is to congestion: above 1 it is congested (the paper's Eq. 3). */
export const load = (link, threshold) => (threshold ? (link.queue * link.element) / threshold : 0);

/** A word for how a direction of a link is. */
export function stateOf(link, threshold) {
  if (!link) return "unknown";
  if (!link.up) return "down";
  if (link.overloaded) return "overloaded";
  const part = load(link, threshold);
  if (part >= 0.6) return "full";
  if (part >= 0.2) return "busy";
  return link.rate_s > 0 || link.queue > 0 ? "calm" : "idle";
}
