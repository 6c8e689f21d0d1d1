/**
 * The last minutes of every broker and link, for the charts: rings of a fixed size, so that a page
 * that stays open for days holds no more than one that was just opened.
 */

export const BROKER_FIELDS = ["published_s", "delivered_s", "queued", "clients"];
export const LINK_FIELDS = ["rate_s", "queue", "q_in", "q_out", "element", "around_s"];

const MINUTES_5 = 600;
const ROOM_BYTES = 32e6;

export class History {
  constructor() {
    this.clear();
  }

  clear() {
    this.size = 0;
    this.count = 0;
    this.times = new Float64Array(0);
    /** @type {Map<string, Float32Array[]>} */
    this.rings = new Map();
  }

  /** Note a pulse. */
  add(pulse) {
    const brokers = Object.entries(pulse.brokers);
    const links = Object.entries(pulse.links);
    if (!this.size) this.begin(brokers.length, links.length);
    const at = this.count++ % this.size;
    this.times[at] = pulse.at_ms / 1000;
    for (const [name, broker] of brokers) this.put(at, name, BROKER_FIELDS, broker);
    for (const [name, link] of links) {
      link.around_s = link.around_overload_s + link.around_fault_s;
      this.put(at, name, LINK_FIELDS, link);
    }
  }

  /** Return [times, values of field 1, ...] of a broker or a direction of a link, oldest first. */
  of(name, fields, wanted) {
    const kept = Math.min(this.count, this.size);
    const ring = this.rings.get(name);
    const rows = wanted.map((field) => ring?.[fields.indexOf(field)]);
    const first = this.count - kept;
    const places = Array.from({ length: kept }, (_, number) => (first + number) % this.size);
    return [
      places.map((place) => this.times[place]),
      ...rows.map((row) => places.map((place) => known(row?.[place]))),
    ];
  }

  begin(brokers, links) {
    const row = 4 * (brokers * BROKER_FIELDS.length + links * LINK_FIELDS.length) || 1;
    this.size = Math.max(120, Math.min(MINUTES_5, Math.floor(ROOM_BYTES / row)));
    this.times = new Float64Array(this.size);
  }

  put(at, name, fields, values) {
    let ring = this.rings.get(name);
    if (!ring) {
      ring = fields.map(() => new Float32Array(this.size).fill(NaN));
      this.rings.set(name, ring);
    }
    fields.forEach((field, number) => {
      ring[number][at] = values.up ? values[field] : NaN;
    });
  }
}

/** A gap in a chart is null, as uPlot has it. */
const known = (number) => (number === undefined || Number.isNaN(number) ? null : number);
