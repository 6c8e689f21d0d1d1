/** A broker: how it is, its charts, its links, and its clients, which are asked for meanwhile. */
import { ask } from "./api.js";
import { Chart } from "./charts.js";
import { el, setText } from "./dom.js";
import { count, plural, rate } from "./format.js";
import { BROKER_FIELDS } from "./history.js";
import { direction, stateOf } from "./store.js";

const ASK_EVERY_MS = 2000;
const CLIENTS_MOST = 50;

export class BrokerDetails {
  constructor(store, name) {
    this.store = store;
    this.name = name;
    const place = store.plan.brokers.find((each) => each.name === name);
    this.facts = new Facts(["state", "address", "published", "delivered", "queued", "subscriptions"]);
    this.facts.put("address", place?.address ?? "");
    this.charts = [
      new Chart("published and delivered per second", [
        { label: "published", colour: "calm" }, { label: "delivered", colour: "accent" }]),
      new Chart("messages that wait", [{ label: "queued", colour: "full" }]),
    ];
    this.links = el("tbody");
    this.clients = el("tbody");
    this.caption = el("caption", { text: "Clients" });
    this.root = el(
      "div",
      { "data-details": name },
      el("h3", {}, "Broker ", el("b", { text: name })),
      this.facts.root,
      ...this.charts.map((chart) => chart.root),
      table("Links", ["to", "is", "rate", "queue"], this.links),
      table(this.caption, ["client", "subs", "delivered", "waiting", "dropped"], this.clients),
    );
    this.fillLinks();
    this.isAsking = false;
    this.timer = setInterval(() => this.ask(), ASK_EVERY_MS);
    this.ask();
  }

  fillLinks() {
    this.rows = new Map();
    for (const { ends } of this.store.plan.links) {
      if (!ends.includes(this.name)) continue;
      const other = ends[0] === this.name ? ends[1] : ends[0];
      const cells = ["is", "rate", "queue"].map(() => el("td"));
      const choose = () => this.store.select({ kind: "link", ends });
      const button = el("button", { class: "plain", type: "button", text: other, on: { click: choose } });
      this.links.append(el("tr", {}, el("th", { scope: "row" }, button), ...cells));
      this.rows.set(other, cells);
    }
  }

  update() {
    const { pulse, plan, history } = this.store;
    const broker = pulse.brokers[this.name];
    if (!broker) return;
    this.facts.put("state", broker.up ? "up" : "✕ dead: it does not answer", !broker.up);
    this.facts.put("published", rate(broker.published_s));
    this.facts.put("delivered", rate(broker.delivered_s));
    this.facts.put("queued", count(broker.queued));
    this.facts.put("subscriptions", count(broker.subscriptions));
    const of = (...fields) => history.of(this.name, BROKER_FIELDS, fields);
    this.charts[0].show(of("published_s", "delivered_s"));
    this.charts[1].show(of("queued"));
    for (const [other, [is, speed, queue]] of this.rows) {
      const link = pulse.links[direction(this.name, other)];
      const state = stateOf(link, plan.threshold);
      setText(is, state);
      is.className = `word ${state}`;
      setText(speed, rate(link?.rate_s ?? 0));
      setText(queue, count(link?.queue ?? 0));
    }
  }

  async ask() {
    if (this.isAsking || this.root.closest("[hidden]") || document.hidden) return;
    if (this.store.pulse?.brokers[this.name]?.up === false) {
      setText(this.caption, "Clients: not known while it does not answer");
      this.clients.replaceChildren();
      return;
    }
    this.isAsking = true;
    try {
      const status = await ask(`/overlay/brokers/${encodeURIComponent(this.name)}`);
      this.showClients(Object.entries(status.clients ?? {}));
    } catch (problem) {
      setText(this.caption, `Clients: ${problem.message}`);
      this.clients.replaceChildren();
    } finally {
      this.isAsking = false;
    }
  }

  showClients(clients) {
    clients.sort(([, one], [, other]) => other.queue_length - one.queue_length);
    const left = clients.length - CLIENTS_MOST;
    const more = left > 0 ? ` (${count(left)} more are not shown)` : "";
    setText(this.caption, `${plural(clients.length, "client")}${more}`);
    this.clients.replaceChildren(...clients.slice(0, CLIENTS_MOST).map(([name, client]) => el(
      "tr",
      {},
      el("th", { scope: "row", text: client.connected ? name : `${name} (away)` }),
      ...["subscriptions", "delivered", "queue_length", "dropped"].map(
        (field) => el("td", { text: count(client[field]) }),
      ),
    )));
  }

  end() {
    clearInterval(this.timer);
    for (const chart of this.charts) chart.end();
  }
}

/** Facts, each with its name. */
export class Facts {
  constructor(names) {
    this.root = el("dl", { class: "facts" });
    this.values = new Map();
    for (const name of names) {
      const value = el("dd");
      this.values.set(name, value);
      this.root.append(el("div", {}, el("dt", { text: name }), value));
    }
  }

  put(name, text, isBad = false) {
    const value = this.values.get(name);
    setText(value, text);
    value.classList.toggle("bad", isBad);
  }
}

/** A table with a caption and names of its columns. */
export function table(caption, columns, body) {
  const title = typeof caption === "string" ? el("caption", { text: caption }) : caption;
  const heads = columns.map((name) => el("th", { scope: "col", text: name }));
  return el("div", { class: "scroll" }, el("table", {}, title, el("thead", {}, el("tr", {}, ...heads)), body));
}
