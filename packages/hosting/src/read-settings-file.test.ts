import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { readSettingsFile } from "./read-settings-file.ts";

/** Reads a file of this text; returns its settings and the problems. */
function read(text: string) {
  const folder = mkdtempSync(join(tmpdir(), "coinslot-settings-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "settings.yaml");
  writeFileSync(path, text);
  const problems: string[] = [];
  const tell = (problem: string) => void problems.push(problem);
  const settings = readSettingsFile(path, { keys: "ledger", tell });
  return { settings, problems: problems.map((each) => each.replace(path, "FILE")) };
}

it.each(["[", "{", "- ", "? ", "[ #]\n", "[{a: "])(
  "a settings file that opens a megabyte of %j is refused at once",
  { timeout: 2_000 },
  (opening) => {
    const { settings, problems } = read(opening.repeat(1_000_000 / opening.length));
    expect(settings).toEqual({});
    expect(problems).toEqual(["FILE: is nested too deeply: at most 64 levels"]);
  },
);

it("a settings file may hold brackets in its text, and many short lists", () => {
  const text = `a: "${"[".repeat(1_000)}" # ${"{".repeat(1_000)}\nlist:\n${"  - [{b: 1}]\n".repeat(1_000)}`;
  const { settings, problems } = read(text);
  expect(problems).toEqual([]);
  expect(settings).toMatchObject({ a: "[".repeat(1_000), list: { length: 1_000 } });
});

it("the line of a fault is named", () => {
  expect(read("ledger: a\n\nb: [\n").problems).toEqual([
    "FILE: cannot be read as YAML or JSON (BAD_INDENT), line 4",
  ]);
});

it.each(["ledger: !vault secret", "%SECRET\n---\nledger: secret", "ledger: [secret"])(
  "nothing of a settings file is printed: %j",
  async (text) => {
    const folder = mkdtempSync(join(tmpdir(), "coinslot-settings-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const path = join(folder, "settings.yaml");
    writeFileSync(path, text);
    const printed: string[] = [];
    const note = ({ message }: Error) => printed.push(message);
    process.on("warning", note);
    onTestFinished(() => void process.off("warning", note));
    readSettingsFile(path, { keys: "ledger", tell: (problem) => printed.push(problem) });
    // A warning of the process comes with the next turn of the event loop.
    await setImmediate();
    expect(printed.join()).not.toMatch(/secret/i);
  },
);
