// Requests to the server, and its streams of events.

import { parse } from "./text.js";

let token = sessionStorage.getItem("token");
let wanted = () => new Refused("");

/** What is done when the server wants a token; it gives the error. */
export const whenWanted = (ask) => { wanted = ask; };
export const hasToken = () => Boolean(token);

const forgetful = [];
/** Calls `forget` when the token changes: what the server said belongs to the token that asked. */
export const withToken = (forget) => forgetful.push(forget);

/** Keeps a token for this tab; null forgets it. */
export function keepToken(text) {
  if (text !== token) for (const forget of forgetful) forget();
  token = text;
  if (text === null) sessionStorage.removeItem("token");
  else sessionStorage.setItem("token", text);
}

/** The server refused a request. */
export class Refused extends Error {}

export async function ask(target, options = {}) {
  const headers = { ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(target, { ...options, headers, cache: "no-store", credentials: "omit" });
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({}));
  // What the server says of a token that it does not know is for programs, unless it carried the request out.
  const isSaid = problem.code === "token_expired" || problem.detail?.includes("carried out");
  if (answer.status === 401) throw wanted(isSaid ? problem.detail : "The server does not know this token.");
  const why = new Refused(problem.detail || `the server answered ${answer.status}`);
  why.code = problem.code;
  why.status = answer.status;
  why.diagnostics = problem.diagnostics;
  why.fields = problem.fields;
  // A server that is stopping, or a proxy without its server: a retry may succeed.
  why.passes = answer.status >= 500;
  throw why;
}

export const get = async (target, options) => parse(await (await ask(target, options)).text());
export const of = (id, rest) => `agents/${encodeURIComponent(id)}/${rest}`;
/** Why a request failed, in a sentence. */
export const because = (why, then = "try again.") => (why instanceof Refused ? why.message : `The server can't be reached${then === "retrying." ? ";" : ":"} ${then}`);

/** The events of a stream after the one with the id `last`, as they happen, each with its id. */
export async function* stream(target, last, signal) {
  const headers = last ? { "Last-Event-ID": last } : {};
  const answer = await ask(target, { headers, signal });
  if (answer.status === 204) return;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    const pieces = rest.split("\n\n");
    rest = pieces.pop();
    for (const piece of pieces) {
      const field = (name) => piece.split("\n").find((line) => line.startsWith(name))?.slice(name.length);
      if (field("data: ")) yield [field("id: "), parse(field("data: "))];
    }
  }
}
