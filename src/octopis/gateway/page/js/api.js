/**
 * Requests to the gateway. The token, where the overlay wants one, lives in this module alone: it
 * is gone with the page.
 */
import { parse } from "./format.js";

let token = "";
/** @type {() => Promise<string>} */
let askForToken = () => Promise.reject(new Problem({ status: 401, detail: "a token is needed" }));

/** What the gateway answers where it cannot do what was asked: application/problem+json. */
export class Problem extends Error {
  constructor(document) {
    super(document.detail || document.title || `the gateway answered ${document.status}`);
    this.status = document.status;
    /** Counts characters from 1; undefined where no place is at fault. */
    this.position = document.position;
  }
}

/** Use this token from now on; "" forgets it. */
export function setToken(text) {
  token = text;
}

export const hasToken = () => token !== "";

/** Say who asks the person for a token when the gateway wants one. */
export function onTokenNeeded(ask) {
  askForToken = ask;
}

/** Ask for JSON. `body` is text that is JSON already, or a value. Raises Problem. */
export async function ask(path, body = undefined, signal = undefined) {
  const response = await request(path, body, signal);
  return parse(await response.text());
}

/** Send a request, once more with a token where it needs one; raise Problem where it is refused. */
export async function request(path, body = undefined, signal = undefined) {
  for (;;) {
    const used = token;
    const response = await send(path, body, signal);
    if (response.ok) return response;
    const problem = await problemOf(response);
    if (problem.status !== 401) throw problem;
    if (token === used) token = "";
    if (token === "") token = await askForToken();
  }
}

async function send(path, body, signal) {
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body === undefined) return reached(path, { headers, signal, cache: "no-store" });
  headers["Content-Type"] = "application/json";
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return reached(path, { method: "POST", headers, body: text, signal });
}

async function reached(path, options) {
  try {
    return await fetch(path, options);
  } catch (failure) {
    if (failure.name === "AbortError") throw failure;
    throw new Problem({ status: 0, detail: "the gateway does not answer" });
  }
}

async function problemOf(response) {
  try {
    return new Problem({ ...(await response.json()), status: response.status });
  } catch {
    return new Problem({ status: response.status, detail: response.statusText });
  }
}
