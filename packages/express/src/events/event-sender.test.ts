import { createServer as createTcpServer } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { type EventReceiver, openReceiver } from "../testing/event-receiver.ts";
import type { EventOptions, EventOutcome } from "./event-options.ts";
import { createEventSender, type Tell } from "./event-sender.ts";
import type { EventContent } from "./lifecycle-event.ts";

/** Timeout for conditions, on a busy machine. */
const patience = { timeout: 20_000 };

const content: EventContent = {
  type: "settle_started",
  details: { network: "eip155:9745" },
};

function createSender(options: EventOptions = {}) {
  const outcomes: EventOutcome[] = [];
  const sender = createEventSender({
    unsafeAllowPrivateAddresses: true,
    onOutcome: (outcome) => outcomes.push(outcome),
    ...options,
  });
  function open(url: string, client = "a client"): Tell {
    const tell = sender.open(url, client);
    if (tell === undefined) throw new Error(`${url} is passed over`);
    return tell;
  }
  const settled = (count: number) =>
    expect.poll(() => outcomes.length, { timeout: 20_000, interval: 5 }).toBe(count);
  return { sender, open, outcomes, settled };
}

async function open(...answer: Parameters<typeof openReceiver>): Promise<EventReceiver> {
  const receiver = await openReceiver(...answer);
  onTestFinished(() => receiver.close());
  return receiver;
}

describe("an event", () => {
  it("is posted as JSON, with an id, a type, a time and data", async () => {
    const receiver = await open();
    const { open: channel, settled, outcomes } = createSender({ now: () => 1_700_000_000_000 });
    channel(`${receiver.url}/hook?shop=7`)(content);
    await settled(1);
    expect(outcomes).toEqual(["delivered"]);
    const [got] = receiver.received;
    expect(got?.path).toBe("/hook?shop=7");
    expect(got?.headers).toMatchObject({
      "content-type": "application/json",
      "webhook-id": got?.event.id,
      "webhook-timestamp": "1700000000",
    });
    expect(got?.event).toEqual({
      id: expect.stringMatching(/^evt_[0-9a-f-]{36}$/),
      type: "settle_started",
      timestamp: "2023-11-14T22:13:20.000Z",
      details: { network: "eip155:9745" },
    });
  });

  it("is posted in the order of its request, even if answers take longer and longer", async () => {
    const held: (() => void)[] = [];
    const receiver = await open((_request, response) => {
      held.push(() => response.end());
    });
    const { open: channel, settled } = createSender();
    const tell = channel(receiver.url);
    tell({ type: "verify_started", details: { ...content.details, checks: [] } });
    tell(content);
    await expect.poll(() => held.length, patience).toBe(1);
    expect(receiver.types()).toEqual(["verify_started"]);
    held[0]?.();
    await expect.poll(() => held.length, patience).toBe(2);
    held[1]?.();
    await settled(2);
    expect(receiver.types()).toEqual(["verify_started", "settle_started"]);
  });

  it("is posted once more where the receiver had closed the kept-alive connection", async () => {
    const sockets = new Set<{ destroy(): void }>();
    const receiver = createTcpServer((socket) => {
      sockets.add(socket);
      let requests = 0;
      socket.on("error", () => undefined);
      socket.on("data", () => {
        requests += 1;
        // A second request on the same connection fails.
        if (requests > 1) socket.destroy();
        else socket.write("HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n\r\n");
      });
    });
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
      receiver.close();
    });
    const address = receiver.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const { open: channel, settled, outcomes } = createSender();
    const tell = channel(`http://127.0.0.1:${port}/`);
    tell(content);
    await settled(1);
    tell(content);
    await settled(2);
    expect(outcomes).toEqual(["delivered", "delivered"]);
    expect(sockets.size).toBe(2);
  });
});

describe("an event over https", () => {
  it("is sent in TLS to the host name of the URL, and never in clear text", async () => {
    const heard: Buffer[] = [];
    const server = createTcpServer((socket) => {
      socket.once("data", (chunk) => {
        heard.push(chunk);
        socket.destroy();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => {
      server.close();
    });
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const { open: channel, settled, outcomes } = createSender();
    channel(`https://localhost:${port}/`)(content);
    await settled(1);
    expect(outcomes).toEqual(["failed"]);
    const [hello] = heard;
    // A handshake record, with a ClientHello that names the server.
    expect([hello?.[0], hello?.[5]]).toEqual([22, 1]);
    expect(hello?.includes("localhost")).toBe(true);
    expect(hello?.includes("settle_started")).toBe(false);
  });
});

describe("an event receiver", () => {
  it("is not followed when it redirects", async () => {
    const target = await open();
    const receiver = await open((_request, response) => {
      response.writeHead(307, { Location: target.url }).end();
    });
    const { open: channel, settled, outcomes } = createSender();
    channel(receiver.url)(content);
    await settled(1);
    expect(outcomes).toEqual(["refused"]);
    expect(target.requests()).toBe(0);
  });

  it("is cut off when it answers without end, and counts as delivered", async () => {
    let isCut = false;
    const receiver = await open((_request, response) => {
      const filling = Buffer.alloc(8 * 2 ** 10);
      response.on("close", () => {
        isCut = true;
      });
      const write = () => {
        if (!response.destroyed) response.write(filling, () => setImmediate(write));
      };
      write();
    });
    const { open: channel, settled, outcomes } = createSender({ timeoutMs: 20_000 });
    channel(receiver.url)(content);
    await settled(1);
    expect(outcomes).toEqual(["delivered"]);
    await expect.poll(() => isCut, patience).toBe(true);
  });

  it("reaches its timeout when it hangs, and loses its own queue alone", async () => {
    const hanging = await open(() => undefined);
    const honest = await open();
    const { open: channel, settled, outcomes } = createSender({ timeoutMs: 2_000 });
    const tell = channel(hanging.url);
    for (let count = 0; count < 5; count += 1) tell(content);
    channel(honest.url)(content);
    await settled(6);
    expect(hanging.requests()).toBe(1);
    expect(honest.types()).toEqual(["settle_started"]);
    expect(outcomes.toSorted()).toEqual([
      "delivered",
      "dropped",
      "dropped",
      "dropped",
      "dropped",
      "failed",
    ]);
  });

  it("is given up silently when it is unreachable", async () => {
    const { open: channel, settled, outcomes } = createSender();
    channel("http://127.0.0.1:1/")(content);
    await settled(1);
    expect(outcomes).toEqual(["failed"]);
  });

  it("has a quarter of all deliveries at most, and further events are dropped", async () => {
    const held: (() => void)[] = [];
    const receiver = await open((_request, response) => {
      held.push(() => response.end());
    });
    const other = await open();
    const limits = { maxInFlight: 8, maxWaiting: 3, timeoutMs: 20_000 };
    const { open: channel, settled, outcomes } = createSender(limits);
    for (let count = 0; count < 6; count += 1) channel(receiver.url)(content);
    await expect.poll(() => held.length, patience).toBe(2);
    expect(outcomes).toEqual(["dropped"]);
    // It does not wait, so it needs no room in the queue.
    channel(other.url)(content);
    await settled(2);
    expect(outcomes).toEqual(["dropped", "delivered"]);
    const answered = expect.poll(
      () => {
        for (const answer of held.splice(0)) answer();
        return outcomes.length;
      },
      { interval: 5 },
    );
    await answered.toBe(7);
    await settled(7);
    expect(receiver.requests()).toBe(5);
  });

  it("gets the events of one client, however many hanging hosts another one names", async () => {
    const hanging = await Promise.all(Array.from({ length: 8 }, () => open(() => undefined)));
    const honest = await open();
    const limits = { maxInFlight: 8, maxWaiting: 20, timeoutMs: 60_000 };
    const { open: channel, settled, outcomes } = createSender(limits);
    for (let count = 0; count < 80; count += 1) {
      channel(hanging[count % 8]?.url ?? "", "a flooder")(content);
    }
    expect(outcomes).toEqual(Array(56).fill("dropped"));
    const tell = channel(honest.url, "another");
    for (let count = 0; count < 3; count += 1) tell(content);
    await settled(56 + 2 + 3);
    expect(outcomes.filter((outcome) => outcome === "delivered")).toHaveLength(3);
    // The honest client's second and third event had to wait: the flooder lost two for them.
    expect(outcomes.filter((outcome) => outcome === "dropped")).toHaveLength(58);
  });

  it("takes turns among clients where all deliveries are under way", async () => {
    const held: (() => void)[] = [];
    const slow = await Promise.all(
      Array.from({ length: 4 }, () =>
        open((_request, response) => {
          held.push(() => response.end());
        }),
      ),
    );
    const honest = await open();
    const { open: channel } = createSender({ maxInFlight: 4, timeoutMs: 60_000 });
    for (let count = 0; count < 40; count += 1) {
      channel(slow[count % 4]?.url ?? "", `flooder ${count % 2}`)(content);
    }
    await expect.poll(() => held.length, patience).toBe(4);
    channel(honest.url, "another")(content);
    // One for each of the three clients.
    for (const answer of held.splice(0, 3)) answer();
    await expect.poll(honest.requests, patience).toBe(1);
  });

  it("that answers one client's events with nothing loses no events of another", async () => {
    const held: { path: string | undefined; end: (isBad: boolean) => void }[] = [];
    const receiver = await open((request, response) => {
      const end = (isBad: boolean) => (isBad ? request.socket.destroy() : response.end());
      held.push({ path: request.url, end });
    });
    const {
      open: channel,
      settled,
      outcomes,
    } = createSender({ maxInFlight: 4, timeoutMs: 60_000 });
    channel(`${receiver.url}/bad`, "a flooder")(content);
    await expect.poll(() => held.length, patience).toBe(1);
    channel(`${receiver.url}/bad`, "a flooder")(content);
    channel(`${receiver.url}/good`, "another")(content);
    held.shift()?.end(true);
    await expect.poll(() => held.map(({ path }) => path), patience).toEqual(["/good"]);
    held.shift()?.end(false);
    await settled(3);
    expect(outcomes.toSorted()).toEqual(["delivered", "dropped", "failed"]);
  });

  it("gets nothing after the sender has closed", async () => {
    const receiver = await open(() => undefined);
    const ending = new AbortController();
    const {
      open: channel,
      settled,
      outcomes,
    } = createSender({
      timeoutMs: 2_000,
      signal: ending.signal,
    });
    const tell = channel(receiver.url);
    tell(content);
    tell(content);
    ending.abort();
    expect(outcomes).toEqual(["dropped"]);
    tell(content);
    await settled(3);
    expect(receiver.requests()).toBe(1);
  });

  it("may have an error counter that throws, and sending still does not throw", async () => {
    const receiver = await open();
    const sender = createEventSender({
      unsafeAllowPrivateAddresses: true,
      maxWaiting: 0,
      onOutcome() {
        throw new Error("cannot count");
      },
    });
    const tell = sender.open(receiver.url, "a client");
    expect(() => tell?.(content)).not.toThrow();
    // The second one waits for the first, and there is no room to wait.
    expect(() => tell?.(content)).not.toThrow();
  });
});

describe("the address of an event", () => {
  it.each([
    ["resolves to loopback", ["127.0.0.1"]],
    ["resolves to loopback mapped into IPv6", ["::ffff:127.0.0.1"]],
    ["resolves to a public address and to loopback", ["1.1.1.1", "127.0.0.1"]],
    ["resolves to nothing", []],
  ])("is no host name that %s", async (_case, addresses) => {
    const receiver = await open();
    const {
      open: channel,
      settled,
      outcomes,
    } = createSender({
      unsafeAllowPrivateAddresses: false,
      resolveHost: async () => addresses,
    });
    channel(`https://shop.example:${receiver.port}/`)(content);
    await settled(1);
    expect(outcomes).toEqual(["failed"]);
    expect(receiver.requests()).toBe(0);
  });

  it("is resolved again from its host name for each connection", async () => {
    const receiver = await open();
    const asked: string[] = [];
    const { open: channel, settled } = createSender({
      unsafeAllowPrivateAddresses: false,
      async resolveHost(hostname) {
        asked.push(hostname);
        return ["127.0.0.1"];
      },
    });
    const tell = channel(`https://rebinding.example:${receiver.port}/`);
    tell(content);
    await settled(1);
    tell(content);
    await settled(2);
    expect(asked).toEqual(["rebinding.example", "rebinding.example"]);
    expect(receiver.requests()).toBe(0);
  });

  it("is not even resolved for plain http or a private address", () => {
    const { sender } = createSender({ unsafeAllowPrivateAddresses: false });
    for (const url of ["http://shop.example/", "https://127.0.0.1/", "https://[::1]/", undefined]) {
      expect(sender.open(url, "a client")).toBeUndefined();
    }
  });
});
