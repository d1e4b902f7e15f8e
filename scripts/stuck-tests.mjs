// A reporter of the test runner, for what hangs. A test that blocks its process has no limit of its
// own. The run would wait for it without an end. This names the file, and prints what the processes
// below wait for. Then it ends the workers, so that the run fails.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** Tests and hooks have limits of two minutes each. */
const limitMs = 600_000;

// biome-ignore lint/style/noDefaultExport: the test runner loads the default export.
export default class StuckTests {
  /** By module: what it last began or ended, and when. */
  #running = new Map();
  #timer;

  onTestRunStart() {
    this.#timer = setInterval(() => this.#look(), 10_000);
    this.#timer.unref();
  }

  onTestRunEnd() {
    clearInterval(this.#timer);
  }

  onTestModuleStart(module) {
    this.#note(module, "its first test");
  }

  onTestCaseReady(test) {
    this.#note(test.module, `"${test.fullName}"`);
  }

  onTestCaseResult(test) {
    this.#note(test.module, `what follows "${test.fullName}"`);
  }

  onTestModuleEnd(module) {
    this.#running.delete(module.moduleId);
  }

  #note({ moduleId }, at) {
    this.#running.set(moduleId, { at, since: performance.now() });
  }

  #look() {
    const now = performance.now();
    const stuck = [...this.#running].filter(([, { since }]) => now - since > limitMs);
    if (stuck.length === 0) return;
    this.#running.clear();
    for (const [file, { at }] of stuck) {
      console.log(`Stuck for ${limitMs / 1_000} s: ${file}, at ${at}`);
    }
    const rows = readProcesses();
    const below = descendants(rows, process.pid);
    for (const { pid, text } of below) console.log(`${text}\n${readStack(pid)}`);
    const workers = below.filter(({ parent }) => parent === process.pid);
    for (const { pid, text } of workers) if (text.includes("vitest")) process.kill(pid, "SIGKILL");
  }
}

function readProcesses() {
  const columns = "pid=,ppid=,stat=,etimes=,time=,wchan:32=,args=";
  const lines = execFileSync("ps", ["-A", "-ww", "-o", columns], { encoding: "utf8" }).split("\n");
  return lines.filter(Boolean).map((line) => {
    const [pid, parent] = line.trim().split(/\s+/, 2).map(Number);
    return { pid, parent, text: line.slice(0, 240) };
  });
}

function descendants(rows, pid) {
  const children = rows.filter(({ parent }) => parent === pid);
  return children.flatMap((child) => [child, ...descendants(rows, child.pid)]);
}

/** What it waits for in the kernel: Linux alone, and root. */
function readStack(pid) {
  try {
    return readFileSync(`/proc/${pid}/stack`, "utf8");
  } catch {
    return "";
  }
}
