import { describe, expect, it } from "vitest";
import { honest } from "../testing/fault-server.ts";
import { answerMethod } from "../testing/faults.ts";
import { readHead, rejectionOf, stateOf, usePoolScene } from "../testing/pool-scene.ts";

const open = usePoolScene();

describe("a required block", () => {
  it("is asked from an endpoint that has it", async () => {
    const { devnet, first, pool } = open();
    await devnet.mine();
    const minBlock = await devnet.client.getBlockNumber();
    first.set(answerMethod("eth_blockNumber", "0x1"));

    const [outcome] = await pool.requestMany([{ method: "eth_gasPrice" }], { minBlock });

    expect(outcome).toMatchObject({ ok: true, endpoint: 2 });
  });

  it("is waited for within the time budget", async () => {
    const { devnet, second, pool } = open({ patienceMs: 5_000 });
    const minBlock = (await devnet.client.getBlockNumber()) + 1n;
    const answer = pool.request({ method: "eth_gasPrice" }, { minBlock });
    await expect.poll(() => second.requests.length).toBeGreaterThan(1);

    await devnet.mine();

    expect(await answer).toMatch(/^0x/);
  });

  it("yields an error of its own when no endpoint has it", async () => {
    const { pool } = open();
    const error = await rejectionOf(pool.request(readHead, { minBlock: 1_000_000n }));
    expect(error).toMatchObject({ failures: [{ kind: "behind" }, { kind: "behind" }] });
    expect(stateOf(pool, 1)).toBe("ready");
  });
});

describe("a lagging endpoint", () => {
  it("comes last until it has caught up", async () => {
    const { devnet, first, pool } = open();
    await devnet.mine(10);
    await pool.ready();
    first.set(answerMethod("eth_blockNumber", "0x1"));
    await pool.compareHeads();
    expect(pool.status()).toMatchObject([{ lagging: true }, { lagging: false }]);

    const [whileLagging] = await pool.requestMany([{ method: "eth_gasPrice" }]);
    first.set(honest);
    await pool.compareHeads();
    const [caughtUp] = await pool.requestMany([{ method: "eth_gasPrice" }]);

    expect(whileLagging).toMatchObject({ endpoint: 2 });
    expect(caughtUp).toMatchObject({ endpoint: 1 });
  });

  it("is detected from traffic alone", async () => {
    const { devnet, first, pool } = open({ headCheckMs: 0 });
    await devnet.mine(10);
    first.set(answerMethod("eth_blockNumber", "0x1"));

    await expect
      .poll(async () => (await pool.requestMany([{ method: "eth_gasPrice" }]))[0])
      .toMatchObject({ endpoint: 2 });
  });
});
