import { connect } from "node:net";
import { OperationRefusedError, type Operator, operatorAt } from "@coinslot/facilitator";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  settled,
  useRefundingDevnet,
  withFloat,
} from "../../../facilitator/src/testing/refunding-devnet.ts";
import { openStream, type TestStream } from "../testing/open-stream.ts";
import { signIn, startTestConsole } from "../testing/signed-in.ts";

const emptyPages: Readonly<Record<string, unknown>> = {
  "payments.list": { matched: null, payments: [], nextCursor: null },
  "refunds.list": { refunds: [] },
};
const gone = operatorAt("sqlite:/nonexistent/ledger.db");

describe("the events of a console", () => {
  const begin = useRefundingDevnet();

  it("tell of a change with one read for all pages", async () => {
    const devnet = await begin("sqlite");
    const facilitator = await devnet.start(withFloat);
    let reads = 0;
    const { operator } = facilitator;
    const counting: Operator = {
      run: (operation, argument) => {
        reads += 1;
        return operator.run(operation, argument);
      },
    };
    const { url, link } = await startTestConsole(counting);
    const browser = await signIn(url, { link: link() });
    const streams: TestStream[] = [];
    for (let count = 0; count < 8; count += 1) {
      streams.push(await openStream(url, { Cookie: browser.cookie }));
    }
    const newest = () => streams.map((stream) => stream.events().at(-1));
    await expect.poll(newest).toEqual(Array(8).fill("changed"));
    const before = streams[0]?.events().length ?? 0;
    const readsBefore = reads;
    const payment = await settled(facilitator, devnet);
    await browser.run("refunds.create", { payment }, { "Idempotency-Key": "k".repeat(16) });
    await expect.poll(() => streams[0]?.events().length).toBeGreaterThan(before);
    const changes = (streams[0]?.events().length ?? 0) - before;
    // Two reads a look, and those of the act: none for each page.
    expect(reads - readsBefore).toBeLessThan(8 * changes + 2 + 8);
  });
});

it("are for sessions and allowed programs, and not for pages of other origins", async () => {
  const { url, link } = await startTestConsole(gone);
  const { cookie } = await signIn(url, { link: link() });
  expect((await openStream(url)).status).toBe(401);
  for (const headers of [{ "Sec-Fetch-Site": "same-site" }, { Origin: "http://127.0.0.1:1" }]) {
    expect((await openStream(url, { Cookie: cookie, ...headers })).status).toBe(403);
  }
  const stream = await openStream(url, { Cookie: cookie });
  expect(stream).toMatchObject({ status: 200 });
  expect(stream.headers["cache-control"]).toContain("no-transform");
  const open = await startTestConsole(gone, { readOnLoopback: true });
  expect((await openStream(open.url)).status).toBe(200);
});

it("say that what is shown is stale while the ledger cannot be read, and that it is not any more", async () => {
  let isGone = true;
  const operator: Operator = {
    async run(operation) {
      if (isGone) throw new OperationRefusedError("not_now", "Not now");
      return operation.result.parse(emptyPages[operation.name]);
    },
  };
  const { url, link } = await startTestConsole(operator);
  const { cookie } = await signIn(url, { link: link() });
  const stream = await openStream(url, { Cookie: cookie });
  await expect.poll(() => stream.events()).toContain("stale");
  isGone = false;
  await expect.poll(() => stream.events().at(-1)).toBe("changed");
});

it("end with the session, and with the console", async () => {
  const { url, link, close } = await startTestConsole(gone, {
    key: "k".repeat(32),
  });
  const first = await signIn(url, { link: link() });
  const second = await signIn(url, { key: "k".repeat(32) });
  const streams = [
    await openStream(url, { Cookie: first.cookie }),
    await openStream(url, { Cookie: second.cookie }),
  ];
  await first.send({ method: "DELETE", path: "/api/session" });
  await expect.poll(() => streams.map((stream) => stream.isEnded())).toEqual([true, false]);
  expect(streams[0]?.events().at(-1)).toBe("ended");
  await close();
  await expect.poll(() => streams[1]?.isEnded()).toBe(true);
  expect(streams[1]?.events()).not.toContain("ended");
});

it("are bounded: of a session, and of all, of which each session has its share", async () => {
  const key = "k".repeat(32);
  const { url } = await startTestConsole(gone, { key });
  const streams: TestStream[] = [];
  const open = async () => {
    const { cookie } = await signIn(url, { key });
    const own: TestStream[] = [];
    for (let count = 0; count < 9; count += 1) own.push(await openStream(url, { Cookie: cookie }));
    streams.push(...own);
    return own.map(({ status }) => status);
  };
  expect(await open()).toEqual([...Array<number>(8).fill(200), 429]);
  for (let count = 0; count < 3; count += 1) await open();
  // The fifth session of an operator takes from the others until it has as much as they.
  expect((await open()).filter((status) => status === 200)).toHaveLength(6);
  const isLive = (stream: TestStream) => stream.status === 200 && !stream.isEnded();
  await expect.poll(() => streams.filter(isLive)).toHaveLength(32);
});

it("events of readers keep no operator from its own", async () => {
  const [key, readerKey] = ["k".repeat(32), "r".repeat(32)];
  const { url } = await startTestConsole(gone, { key, readerKey, readOnLoopback: true });
  for (let session = 0; session < 5; session += 1) {
    const { cookie } = await signIn(url, { key: readerKey });
    for (let count = 0; count < 8; count += 1) await openStream(url, { Cookie: cookie });
  }
  for (let count = 0; count < 9; count += 1) await openStream(url);
  const { cookie } = await signIn(url, { key });
  expect((await openStream(url, { Cookie: cookie })).status).toBe(200);
});

it("leave room for the operator beside connections that send nothing", async () => {
  const { url, link } = await startTestConsole(gone);
  const { port } = new URL(url);
  const silent = Array.from({ length: 100 }, () => connect(Number(port), "127.0.0.1"));
  onTestFinished(() => {
    for (const socket of silent) socket.destroy();
  });
  for (const socket of silent) socket.on("error", () => undefined).write("GET /api/session HT");
  await expect(signIn(url, { link: link() })).resolves.toBeDefined();
});
