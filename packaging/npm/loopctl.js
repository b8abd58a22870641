#!/usr/bin/env node
// Starts the program of this platform's package: nothing is downloaded when the package is installed.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const program = process.platform === "win32" ? "loopctl.exe" : "loopctl";
const name = `@loopctl/${process.platform}-${process.arch}`;

let path;
try {
  path = require.resolve(`${name}/bin/${program}`);
} catch {
  console.error(`loopctl: the package ${name} is not installed. npm installs it as an optional dependency of loopctl,`);
  console.error("unless --omit=optional was given, or there is none for this platform: `cargo install loopctl` builds one.");
  process.exit(2);
}

let child;
// Before the program starts, so that no signal ends this process and leaves the program behind. A terminal sends its signals to both
// processes; those for this one alone are passed on. loopctl decides how it ends.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) {
  process.on(signal, () => {
    const isOfTerminal = signal === "SIGINT" && process.stdin.isTTY;
    if (!isOfTerminal) child.kill(signal);
  });
}
child = spawn(path, process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => {
  console.error(`loopctl: ${path} can't be started: ${error.message}`);
  process.exit(2);
});
child.on("exit", (code, signal) => {
  process.exit(signal ? 128 + constants.signals[signal] : code);
});
