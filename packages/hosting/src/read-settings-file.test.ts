import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { readSettingsFile } from "./read-settings-file.ts";

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
