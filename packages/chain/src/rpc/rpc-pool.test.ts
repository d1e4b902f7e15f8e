import { describe, expect, it, onTestFinished } from "vitest";
import { createRpcPool, RpcClosedError } from "../index.ts";
import { honest, secret } from "../testing/fault-server.ts";
import { answerStatus } from "../testing/faults.ts";
import { chainId, readHead, stateOf, usePoolScene } from "../testing/pool-scene.ts";

const open = usePoolScene();

describe("a limit of an RPC pool", () => {
  it("holds for concurrent requests, and loses no request", async () => {
    const { first, pool } = open({ maxInFlight: 3 });
    await pool.ready();
    const held: (() => void)[] = [];
    let most = 0;
    first.set(async (exchange) => {
      await new Promise<void>((resolve) => {
        held.push(resolve);
        most = Math.max(most, held.length);
      });
      await honest(exchange);
    });

    const answers = Promise.all(Array.from({ length: 30 }, () => pool.request(readHead)));
    for (let answered = 0; answered < 30; answered += 3) {
      await expect.poll(() => held.length).toBe(3);
      for (const release of held.splice(0)) release();
    }

    expect(await answers).toHaveLength(30);
    expect(most).toBe(3);
    expect(pool.status()[0]?.inFlight).toBe(0);
  });

  it("fails no request by calls per second that alone takes longer than its timeout", async () => {
    const { pool } = open({ onlyFirst: true, callsPerSecond: 60, timeoutMs: 3_000 });
    const outcomes = await pool.requestMany(Array(300).fill(readHead));
    expect(outcomes).toHaveLength(300);
    expect(outcomes.every(({ ok }) => ok)).toBe(true);
  });

  it("sends the request elsewhere without room in time, and marks no endpoint as failed", async () => {
    const { first, pool } = open({ maxInFlight: 1 });
    await pool.ready();
    first.set(() => undefined);
    const controller = new AbortController();
    const slow = pool.request(readHead, { signal: controller.signal });

    const [outcome] = await pool.requestMany([readHead], { timeoutMs: 2_000 });

    expect(outcome).toMatchObject({ endpoint: 2, failures: [{ kind: "busy", maybeSent: false }] });
    controller.abort();
    await expect(slow).rejects.toThrow();
  });
});

describe("the configuration of an RPC pool", () => {
  it("reports all errors at once, by position and without URLs", () => {
    const { first } = open();
    const rpcUrls = [first.url, `ftp://${secret}/`, "nonsense"];
    expect(() => createRpcPool({ chainId, rpcUrls })).toThrow(
      "rpcUrls[1] must begin with http:// or https://, or wss://; rpcUrls[2] is not a URL",
    );
    expect(() => createRpcPool({ chainId, rpcUrls: [] })).toThrow("rpcUrls is empty");
  });

  it("takes user and password from the URL", async () => {
    const { first } = open();
    const rpcUrl = first.url.replace("http://", "http://user:pass%20word@");
    const pool = createRpcPool({ chainId, rpcUrls: [rpcUrl] });
    onTestFinished(() => pool.close());
    let authorization: string | undefined;
    first.set((exchange) => {
      authorization = exchange.headers.authorization;
      return honest(exchange);
    });

    await pool.request(readHead);

    expect(authorization).toBe(`Basic ${btoa("user:pass word")}`);
  });

  it("survives a listener that throws", async () => {
    const { first, pool } = open({
      onEvent() {
        throw new Error("listener");
      },
    });
    await pool.ready();
    first.set(answerStatus(500));
    expect(await pool.request(readHead)).toMatch(/^0x/);
  });
});

describe("an RPC request", () => {
  it("ends at once when the caller aborts, with the caller's reason", async () => {
    const { first, pool } = open({ timeoutMs: 60_000 });
    await pool.ready();
    first.set(() => undefined);
    const controller = new AbortController();
    const answer = pool.request(readHead, { signal: controller.signal });
    await expect.poll(() => first.requests.length).toBe(2);
    const reason = new Error("enough");

    controller.abort(reason);

    await expect(answer).rejects.toBe(reason);
    expect(stateOf(pool, 1)).toBe("ready");
  });

  it("ends at once when the pool closes, and leaves no handle open", async () => {
    const { first, pool } = open({ timeoutMs: 60_000, maxInFlight: 2, patienceMs: 60_000 });
    await pool.ready();
    first.set(() => undefined);
    const answers = Array.from({ length: 5 }, () => pool.request(readHead));
    await expect.poll(() => first.requests.length).toBe(3);

    pool.close();

    for (const answer of answers) await expect(answer).rejects.toBeInstanceOf(RpcClosedError);
    await expect(pool.request(readHead)).rejects.toBeInstanceOf(RpcClosedError);
    await expect(pool.ready()).rejects.toBeInstanceOf(RpcClosedError);
    await expect.poll(() => pool.status()[0]?.inFlight).toBe(0);
  });
});
