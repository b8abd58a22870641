// What the page says of itself, in its head, and that something has changed.

import { fill } from "./text.js";

const line = () => document.getElementById("said");
export const said = () => line().textContent;
const put = (text) => { if (said() !== text) fill(line(), text); };
/** How long a message stays, unless another one comes. */
const MESSAGE_MS = 6000;
let until = 0;
/** Says what came of something: a look at the lists that succeeds leaves it there for a while. */
export const say = (text) => {
  until = text ? Date.now() + MESSAGE_MS : 0;
  put(text);
};
/** Says how the server is; nothing when all is well. */
export const note = (text) => {
  if (text) until = 0;
  if (Date.now() >= until) put(text);
};

/** Why a request of many parts ended early, by its code. */
export const stoppedBy = (code) => (["unauthorized", "token_expired", "forbidden"].includes(code)
  ? `the token has expired, was revoked or may not do this any more (${code})` : `a share is used up (${code})`);

/** The event after which the lists are looked up at once. */
export const CHANGED = "loopctl-changed";
export const changed = () => document.dispatchEvent(new Event(CHANGED));
