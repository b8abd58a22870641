// What the page says of itself, in its head, and that something has changed.

import { fill } from "./text.js";

const line = () => document.getElementById("said");
export const said = () => line().textContent;
export const say = (text) => { if (said() !== text) fill(line(), text); };

/** The event after which the lists are looked up at once. */
export const CHANGED = "loopctl-changed";
export const changed = () => document.dispatchEvent(new Event(CHANGED));
