import type { Devnet } from "@coinslot/devnet";
import { describe, expect, it, onTestFinished } from "vitest";
import { createRpcPool } from "../index.ts";
import { honest } from "../testing/fault-server.ts";
import { answerMethod } from "../testing/faults.ts";
import { chainId, readHead, rejectionOf, stateOf, usePoolScene } from "../testing/pool-scene.ts";

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
    first.set(answerMethod("eth_getBlockByNumber", await headOf(devnet, { behind: 10 })));
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
    first.set(answerMethod("eth_getBlockByNumber", await headOf(devnet, { behind: 10 })));

    await expect
      .poll(async () => (await pool.requestMany([{ method: "eth_gasPrice" }]))[0])
      .toMatchObject({ endpoint: 2 });
  });

  it("is one behind two others, also where its newest block calls itself new", async () => {
    const { devnet, first, second } = open();
    const pool = createRpcPool({
      chainId,
      rpcUrls: [first.url, second.url, devnet.rpcUrl],
      patienceMs: 0,
    });
    onTestFinished(() => pool.close());
    await devnet.mine(20);
    await pool.ready();
    const late = await headOf(devnet, { behind: 8 });
    first.set(answerMethod("eth_getBlockByNumber", { ...late, timestamp: now() }));
    await pool.compareHeads();
    expect(pool.status()[0]).toMatchObject({ lagging: false });

    const old = await headOf(devnet, { behind: 20 });
    first.set(answerMethod("eth_getBlockByNumber", { ...old, timestamp: now() }));

    await pool.compareHeads();
    const [outcome] = await pool.requestMany([{ method: "eth_gasPrice" }]);

    expect(outcome).toMatchObject({ ok: true, endpoint: 2 });
  });

  it("is none below a head that the chain cannot have reached, though its block is old", async () => {
    const { devnet, second, pool } = open({ now: () => Date.now() + 3_600_000 });
    await devnet.mine();
    await pool.ready();
    const isFirstLagging = async (behind: number) => {
      second.set(answerMethod("eth_getBlockByNumber", await headOf(devnet, { behind })));
      await pool.compareHeads();
      return pool.status()[0]?.lagging;
    };
    expect(await isFirstLagging(-1_000_000)).toBe(false);
    expect(await isFirstLagging(-1_000)).toBe(true);
  });

  it("is none whose newest block is new, whatever head another claims", async () => {
    const { devnet, second, pool } = open();
    await devnet.mine();
    await pool.ready();
    const head = await headOf(devnet, { behind: -1_000 });
    second.set((exchange) => {
      const asksNumber = exchange.calls[0]?.method === "eth_blockNumber";
      const lie = asksNumber
        ? answerMethod("eth_blockNumber", head.number)
        : answerMethod("eth_getBlockByNumber", head);
      return lie(exchange);
    });
    await pool.compareHeads();
    expect(pool.status()).toMatchObject([{ lagging: false }, { lagging: false }]);

    const [outcome] = await pool.requestMany([{ method: "eth_gasPrice" }]);

    expect(outcome).toMatchObject({ ok: true, endpoint: 1 });
  });
});

function now() {
  return `0x${Math.floor(Date.now() / 1_000).toString(16)}`;
}

/** A head some blocks of one second behind the devnet's newest, whose time is now. */
async function headOf({ client }: Devnet, { behind }: { behind: number }) {
  const { number, hash, parentHash } = await client.getBlock();
  const quantity = (value: bigint | number) => `0x${value.toString(16)}`;
  return {
    number: quantity(number - BigInt(behind)),
    hash,
    parentHash,
    timestamp: quantity(Math.floor(Date.now() / 1_000) - Math.max(0, behind) - 1),
  };
}
