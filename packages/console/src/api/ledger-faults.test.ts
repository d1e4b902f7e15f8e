import { prepareOutage } from "@coinslot/devnet";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { lockDatabaseFile } from "../../../storage/src/sqlite/lock-file.ts";
import {
  createPostgresUrl,
  createSqliteUrl,
  engines,
} from "../../../storage/src/testing/engines.ts";
import { openFaultyLedger, type schemas } from "../testing/faulty-ledger.ts";
import { openStream } from "../testing/open-stream.ts";
import { signIn } from "../testing/signed-in.ts";

const stop = {
  operation: "set",
  target: { kind: "route", name: "GET /weather" },
  reason: "Maintenance",
};
const named = { "Idempotency-Key": "k".repeat(32) };

async function open(url: string, schema: keyof typeof schemas) {
  const ledger = await openFaultyLedger(url, schema);
  return { ...ledger, browser: await signIn(ledger.url, { link: ledger.link() }) };
}

/** Once the sign-in is in the audit log, the console holds nothing. */
async function openAtRest(url: string) {
  const opened = await open(url, "same");
  const entries = async () => JSON.stringify((await opened.browser.run("audit.list")).json);
  await expect.poll(entries).toContain("session.open");
  return opened;
}

describe.each(engines)("a ledger that this release cannot use, on $engine", ({ createUrl }) => {
  it("is being brought up to date, and then it can be read", async () => {
    const { bringUpToDate, browser, url } = await open(await createUrl(), "older");
    const stream = await openStream(url, { Cookie: browser.cookie });
    for (const answer of [
      await browser.run("payments.list"),
      await browser.run("stops", stop, named),
    ]) {
      expect(answer).toMatchObject({
        status: 503,
        headers: { "retry-after": "5" },
        json: { code: "ledger_older", remedy: expect.stringContaining("wait until it is ready") },
      });
    }
    await expect.poll(() => stream.events()).toContain("stale");
    // The seller of this release starts.
    await bringUpToDate();
    expect((await browser.run("payments.list")).status).toBe(200);
    await expect.poll(() => stream.events().at(-1)).toBe("changed");
  });

  it("is of a newer release", async () => {
    const { browser } = await open(await createUrl(), "newer");
    for (const answer of [
      await browser.run("payments.list"),
      await browser.run("stops", stop, named),
    ]) {
      expect(answer).toMatchObject({
        status: 503,
        json: { code: "ledger_newer", remedy: expect.stringContaining("release that the seller") },
      });
    }
  });
});

describe("a ledger on PostgreSQL", () => {
  it("is away, and is read again once it is back", async () => {
    const place = await createPostgresUrl();
    const outage = await prepareOutage(place);
    onTestFinished(async () => {
      await outage.end();
      await outage.close();
    });
    const { browser, url } = await open(place, "same");
    const stream = await openStream(url, { Cookie: browser.cookie });
    expect((await browser.run("payments.list")).status).toBe(200);
    await outage.begin();
    for (const answer of [
      await browser.run("payments.list"),
      await browser.run("today"),
      await browser.run("stops", stop, named),
    ]) {
      expect(answer).toMatchObject({
        status: 503,
        headers: { "retry-after": "5" },
        json: { code: "ledger_unreachable", remedy: expect.stringMatching(/\w/) },
      });
      expect(answer.text).not.toContain(place);
    }
    await expect.poll(() => stream.events()).toContain("stale");
    await outage.end();
    expect(await browser.run("stops", stop, named)).toMatchObject({ status: 200 });
    await expect.poll(() => stream.events().at(-1), { timeout: 15_000 }).toBe("changed");
  });
});

describe("a locked ledger", () => {
  it("is read all the same, and changed once its holder has left", async () => {
    const url = await createSqliteUrl();
    const { browser } = await openAtRest(url);
    const lock = await vi.waitFor(() => lockDatabaseFile(url));
    expect((await browser.run("payments.list")).status).toBe(200);
    expect(await browser.run("stops", stop, named)).toMatchObject({
      status: 503,
      json: { code: "ledger_locked", remedy: expect.stringContaining("Another process holds") },
    });
    lock?.release();
    expect(await browser.run("stops", stop, named)).toMatchObject({ status: 200 });
  });

  it("is busy with a transaction of another program", async () => {
    const { browser, database } = await openAtRest(await createSqliteUrl());
    let end: (() => void) | undefined;
    const held = new Promise<void>((resolve) => {
      end = resolve;
    });
    const holding = database.transaction(() => held);
    expect((await browser.run("payments.list")).status).toBe(200);
    expect(await browser.run("stops", stop, named)).toMatchObject({
      status: 503,
      json: { code: "ledger_locked", remedy: expect.stringContaining("Try again") },
    });
    end?.();
    await holding;
    expect((await browser.run("stops", stop, named)).status).toBe(200);
  });
});
