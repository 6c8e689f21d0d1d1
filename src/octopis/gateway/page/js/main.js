/** The page: what it is made of, and how it follows the gateway. */
import { ask } from "./api.js";
import { Details } from "./details.js";
import { byId, setText } from "./dom.js";
import { Drawing } from "./drawing.js";
import { DrawingKeys } from "./drawing_keys.js";
import { Events } from "./events.js";
import { parse } from "./format.js";
import { Header } from "./header.js";
import { Lists } from "./lists.js";
import { Playground } from "./playground.js";
import { Publish } from "./publish.js";
import { follow } from "./sse.js";
import { Store } from "./store.js";
import { Tabs } from "./tabs.js";
import { Tail } from "./tail.js";
import { startTheme } from "./theme.js";
import { startToken } from "./token.js";
import { WhatIf } from "./whatif.js";

const SILENCE_MS = 8000;
/** Columns that are rather many want the whole width. */
const WIDE_FROM_REGIONS = 10;

const store = new Store();
const drawing = new Drawing((what) => {
  if (tabs.current === "whatif") {
    whatIf.activated(what);
    return;
  }
  store.select(what);
  if (tabs.current !== "details") tabs.show("details");
});
const keys = new DrawingKeys(drawing);
store.on("plan", () => {
  document.body.classList.toggle("wide", store.plan.regions.length >= WIDE_FROM_REGIONS);
  drawing.build(store.plan);
  keys.built();
});
new Header(store);
const events = new Events(store);
const details = new Details(store);
const lists = new Lists(store);
const playground = new Playground();
new Tail();
new Publish();
const whatIf = new WhatIf(store, drawing);
const tabs = new Tabs((name) => {
  whatIf.setShown(name === "whatif");
  if (name === "filter") playground.shown();
  if (name === "details") details.update();
  if (name === "lists") lists.update();
});

store.on("pulse", () => drawing.update(store.pulse));
store.on("selection", () => drawing.select(store.selection));

startTheme(() => details.redraw());
startToken(() => location.reload());

/** The plan as text, to see whether it has changed when the gateway comes back. */
let planText = "";

async function loadPlan() {
  const plan = await ask("/overlay");
  const text = JSON.stringify(plan);
  if (text !== planText) {
    planText = text;
    store.history.clear();
    store.setPlan(plan);
  }
}

function notice(text) {
  setText(byId("notice"), text);
  byId("notice").hidden = !text;
}

/** Pulses wait for the plan that they belong to. */
let loading = Promise.resolve();

follow("/overlay/live", {
  silenceMs: SILENCE_MS,
  opened: () => {
    events.beginAnew();
    notice("");
    loading = loadPlan().catch((problem) => notice(problem.message));
  },
  heard: ({ kind, data }) => {
    if (kind !== "pulse") return;
    loading.then(() => {
      if (!store.isLive) store.setLive(true);
      store.setPulse(parse(data));
    });
  },
  broken: (reason, wait) => {
    store.setLive(false);
    const what = reason[0].toUpperCase() + reason.slice(1);
    notice(`${what}. What you see is old; trying again in ${wait / 1000} s.`);
  },
  refused: (problem) => {
    store.setLive(false);
    notice(problem.message);
  },
});
