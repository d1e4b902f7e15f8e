import { Client, Pool } from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { createPostgresNotifications } from "./postgres/postgres-notifications.ts";
import { createPostgresUrl, engines, openForTest } from "./testing/engines.ts";
import { startTcpProxy } from "./testing/tcp-proxy.ts";

describe.each(engines)("notifications on $engine", ({ createUrl }) => {
  it("reach every listener of the channel until it stops", async () => {
    const database = await openForTest({ url: await createUrl() });
    const heard: string[] = [];
    const listenAs = (who: string, channel: string) =>
      database.listen(channel, (payload) => heard.push(`${who} ${payload}`));
    await listenAs("a", "queue");
    const stop = await listenAs("b", "queue");
    await listenAs("c", `other "channel"`);
    await database.notify("queue", "1");
    await expect.poll(() => heard).toEqual(["a 1", "b 1"]);

    await stop();
    await database.notify("queue", "2");
    await database.notify(`other "channel"`, "3");
    await expect.poll(() => heard).toEqual(["a 1", "b 1", "a 2", "c 3"]);
  });

  it("survive a handler that throws, and report its error", async () => {
    const errors: unknown[] = [];
    const database = await openForTest({
      url: await createUrl(),
      onBackgroundError: (error) => errors.push(error),
    });
    const heard: unknown[] = [];
    const failure = new Error("handler");
    await database.listen("queue", () => {
      throw failure;
    });
    await database.listen("queue", (payload) => heard.push(payload));
    await database.notify("queue", "1");
    await expect.poll(() => heard).toEqual(["1"]);
    expect(errors).toEqual([failure]);
  });
});

describe("notifications on postgres", () => {
  it("pass from one process to the others", async () => {
    const url = await createPostgresUrl();
    const leader = await openForTest({ url });
    const other = await openForTest({ url });
    const heard: unknown[] = [];
    await leader.listen("queue", (payload) => heard.push(payload));
    await other.notify("queue", "eip155:9745");
    await expect.poll(() => heard).toEqual(["eip155:9745"]);
  });

  it("are merged when they are equal and simultaneous, and the last is not lost", async () => {
    const database = await openForTest({ url: await createPostgresUrl() });
    let heard = 0;
    await database.listen("queue", () => heard++);
    let last = "";
    await database.listen("end", (payload) => {
      last = payload ?? "";
    });
    await Promise.all(Array.from({ length: 50 }, () => database.notify("queue", "same")));
    await database.notify("end", "end");
    await expect.poll(() => last).toBe("end");
    expect(heard).toBe(2);
  });

  it("resume after a lost connection, and report that some may be missing", async () => {
    const target = await createPostgresUrl();
    const proxy = await startTcpProxy(target);
    const database = await openForTest({ url: proxy.url });
    const other = await openForTest({ url: target });
    const heard: unknown[] = [];
    await database.listen("queue", (payload) => heard.push(payload));
    await proxy.cut();
    await other.notify("queue", "missed");
    await proxy.mend();
    await expect.poll(() => heard, { timeout: 20_000 }).toEqual([undefined]);
    await other.notify("queue", "again");
    await expect.poll(() => heard).toEqual([undefined, "again"]);
  });

  it("are not blocked by a connection that died silently", async () => {
    const proxy = await startTcpProxy(await createPostgresUrl());
    const database = await openForTest({ url: proxy.url, statementTimeoutMs: 1_000 });
    proxy.freeze();
    const sent = [database.notify("queue", "same"), database.notify("queue", "same")];
    const outcomes = await Promise.allSettled(sent);
    expect(outcomes).toMatchObject([
      { status: "rejected", reason: { kind: "connection-lost" } },
      { status: "fulfilled" },
    ]);
  });

  it("can be closed while the server sends nothing", async () => {
    const proxy = await startTcpProxy(await createPostgresUrl());
    const database = await openForTest({ url: proxy.url, connectTimeoutMs: 2_000 });
    await database.listen("queue", () => {});
    proxy.freeze();
    await database.close();
  });

  it("detect a connection that died silently", async () => {
    const connectionString = await createPostgresUrl();
    const proxy = await startTcpProxy(connectionString);
    const pool = new Pool({ connectionString });
    // A client that is closing when its database is dropped gets an error, and passes it to its
    // pool.
    pool.on("error", () => {});
    const notifications = createPostgresNotifications({
      pool,
      label: "the database",
      answerTimeoutMs: 5_000,
      createClient: () =>
        new Client({ connectionString: proxy.url, pipeline: true, query_timeout: 2_000 }),
      heartbeatMs: 50,
      onBackgroundError: () => {},
    });
    onTestFinished(async () => {
      await notifications.close();
      await pool.end();
    });
    const heard: unknown[] = [];
    await notifications.listen("queue", (payload) => heard.push(payload));
    proxy.freeze();
    await expect.poll(() => heard, { timeout: 20_000 }).toEqual([undefined]);
    await notifications.notify("queue", "again");
    await expect.poll(() => heard).toEqual([undefined, "again"]);
  });
});
