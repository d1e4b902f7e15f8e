import { readdirSync, statSync, writeFileSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it, onTestFinished } from "vitest";
import { silentLogger } from "../logger.ts";
import type { StopChange } from "../stops/stop.ts";
import { askSeller } from "./ask-seller.ts";
import { serveOperators } from "./serve-operators.ts";

const change: StopChange = {
  operation: "set",
  target: { kind: "route", name: "GET /weather" },
  reason: "no forecast",
};
const report = { stops: [], isKnown: true, runsOlderProgram: false };

async function createFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "coinslot-operators-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

/** Serves the operator of a ledger in a new folder. */
async function serve(options: { folder?: string; changeStop?: () => Promise<typeof report> } = {}) {
  const { changeStop = async () => report } = options;
  const folder = options.folder ?? (await createFolder());
  const warnings: string[] = [];
  const ledgerUrl = `sqlite:${join(folder, "ledger.db")}`;
  const operators = await serveOperators({
    ledgerUrl,
    actions: { changeStop },
    logger: { ...silentLogger, warn: (_details, message) => void warnings.push(message) },
  });
  onTestFinished(() => operators.close());
  return { ...operators, folder, ledgerUrl, warnings, socket: join(folder, "ledger.db.socket") };
}

function post(socketPath: string, path: string, body: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asking = request({ socketPath, path, method: "POST", agent: false }, (response) =>
      text(response).then(() => resolve(response.statusCode), reject),
    );
    asking.once("error", reject).end(body);
  });
}

describe("the operator's socket", () => {
  it("serves its user alone, and leaves nothing behind", async () => {
    const { socket, ledgerUrl, folder, close } = await serve();
    expect(statSync(socket).mode & 0o777).toBe(0o600);
    expect(await askSeller(ledgerUrl, change)).toEqual(report);
    await close();
    expect(readdirSync(folder)).toEqual([]);
    expect(await askSeller(ledgerUrl, change)).toBeUndefined();
  });

  it("takes the place of what a dead process has left", async () => {
    const folder = await createFolder();
    writeFileSync(join(folder, "ledger.db.socket"), "");
    const { ledgerUrl } = await serve({ folder });
    expect(await askSeller(ledgerUrl, change)).toEqual(report);
  });

  it("refuses what it does not know, and what is too large", async () => {
    const { socket } = await serve();
    expect(await post(socket, "/payments", "{}")).toBe(404);
    expect(await post(socket, "/stops", "{")).toBe(400);
    expect(await post(socket, "/stops", JSON.stringify({ ...change, target: {} }))).toBe(400);
    const reason = "a".repeat(20_000);
    expect(await post(socket, "/stops", JSON.stringify({ ...change, reason }))).toBe(400);
  });

  it("reports a failure in words, without its cause", async () => {
    const changeStop = () => Promise.reject(new Error("disk /var/secret is full"));
    const { ledgerUrl } = await serve({ changeStop });
    await expect(askSeller(ledgerUrl, change)).rejects.toThrow(
      "The seller could not do it now: its log says why.",
    );
  });

  it("is missing, with a warning, where its path is too long for the system", async () => {
    const folder = join(await createFolder(), "a".repeat(200));
    await mkdir(folder);
    const { ledgerUrl, warnings } = await serve({ folder });
    expect(warnings).toEqual([
      "commands of the operator cannot reach this process: it has no socket",
    ]);
    expect(readdirSync(folder)).toEqual([]);
    await expect(askSeller(ledgerUrl, change)).rejects.toThrow(/more than 103 bytes/);
  });
});
