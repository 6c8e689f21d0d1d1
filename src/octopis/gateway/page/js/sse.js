/**
 * Server-sent events over fetch, which can carry a token in a header; EventSource cannot.
 * A stream that breaks is opened again, after a while that grows.
 */
import { request } from "./api.js";

const WAIT_MS = [500, 1000, 2000, 4000, 8000];

/**
 * @typedef {object} Listener
 * @property {(event: {kind: string, data: string, id: string}) => void} heard
 * @property {() => void} [opened]
 * @property {(reason: string, waitMs: number) => void} [broken] It is tried again after so long.
 * @property {(problem: Error) => void} [refused] It is not tried again: the question is wrong.
 * @property {number} [silenceMs] A stream that is silent for so long counts as broken.
 */

/** Follow a stream until the returned function is called. @param {Listener} listener */
export function follow(path, listener) {
  const stop = new AbortController();
  run(path, listener, stop.signal);
  return () => stop.abort();
}

async function run(path, listener, stopped) {
  let failures = 0;
  while (!stopped.aborted) {
    let reason = "the stream has ended";
    try {
      await once(path, listener, stopped, () => {
        failures = 0;
        listener.opened?.();
      });
    } catch (failure) {
      if (stopped.aborted) return;
      if (failure.status >= 400 && failure.status < 500 && ![408, 429].includes(failure.status)) {
        listener.refused?.(failure);
        return;
      }
      reason = failure.name === "AbortError" ? "the gateway is silent" : failure.message;
    }
    const wait = WAIT_MS[Math.min(failures++, WAIT_MS.length - 1)];
    if (stopped.aborted) return;
    listener.broken?.(reason, wait);
    await pause(wait, stopped);
  }
}

/** Read one answer to its end. */
async function once(path, listener, stopped, opened) {
  const ending = new AbortController();
  const end = () => ending.abort();
  stopped.addEventListener("abort", end);
  let watch = 0;
  const heardOf = () => {
    clearTimeout(watch);
    if (listener.silenceMs) watch = setTimeout(end, listener.silenceMs);
  };
  try {
    const response = await request(path, undefined, ending.signal);
    opened();
    heardOf();
    const parser = new Parser(listener.heard);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      heardOf();
      parser.take(piece.value);
    }
  } finally {
    clearTimeout(watch);
    stopped.removeEventListener("abort", end);
  }
}

/** Text in pieces to events. */
export class Parser {
  constructor(heard) {
    this.heard = heard;
    this.rest = "";
    this.begin();
  }

  begin() {
    this.kind = "message";
    this.id = "";
    this.data = [];
  }

  take(text) {
    const lines = (this.rest + text).split(/\r?\n/);
    this.rest = lines.pop() ?? "";
    for (const line of lines) this.line(line);
  }

  line(line) {
    if (line === "") {
      const event = { kind: this.kind, data: this.data.join("\n"), id: this.id };
      if (this.data.length) this.heard(event);
      this.begin();
      return;
    }
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.data.push(value);
    else if (name === "event") this.kind = value;
    else if (name === "id") this.id = value;
  }
}

function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve(undefined);
    });
  });
}
