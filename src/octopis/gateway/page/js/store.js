/** What the page knows: the overlay's plan, the last pulse, and what is selected. */

import { History } from "./history.js";

/** An overload stays visible for so long: queues come and go between two looks. */
export const KEPT_MS = 1500;

/**
 * Tells of "plan", "pulse", "selection" and "connection".
 * @typedef {{kind: "broker", name: string} | {kind: "link", ends: [string, string]}} Selection
 */
export class Store extends EventTarget {
  /** @type {any} */ plan = null;
  /** @type {any} */ pulse = null;
  /** @type {Selection | null} */ selection = null;
  history = new History();
  /** Until when each direction of a link counts as overloaded. @type {Map<string, number>} */
  overloadedUntil = new Map();
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
    this.keepOverloads(pulse);
    this.history.add(pulse);
    this.tell("pulse");
  }

  /** Let all parts of the page see the same overloads, for as long as the drawing has them. */
  keepOverloads(pulse) {
    for (const [name, link] of Object.entries(pulse.links)) {
      if (link.overloaded) this.overloadedUntil.set(name, pulse.at_ms + KEPT_MS);
      else if (link.up && pulse.at_ms < (this.overloadedUntil.get(name) ?? 0)) link.overloaded = true;
    }
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
