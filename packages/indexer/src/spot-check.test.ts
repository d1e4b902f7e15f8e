import { misbehavingToken, testUsdt0 } from "@coinslot/devnet";
import { describe, expect, it } from "vitest";
import { silentLogger } from "./logger.ts";
import type { BalanceDifference } from "./spot-check.ts";
import { enginesByDay } from "./testing/engines.ts";
import { changing, honest, startFaultProxy } from "./testing/fault-proxy.ts";
import { expectExact } from "./testing/oracle.ts";
import { startChain, startIndexer, usdtOf } from "./testing/scene.ts";

describe.each(enginesByDay)("the spot check on $engine", ({ createUrl }) => {
  it("compares balances with the chain, and reports changes without a Transfer", async () => {
    const devnet = await startChain();
    const { client, accounts } = devnet;
    const [honest, odd] = accounts.others;
    if (honest === undefined || odd === undefined) throw new Error("Too few accounts.");
    const address = await devnet.deployMisbehavingToken("honest");
    for (const { address: to } of [honest, odd])
      await devnet.mint({ to, amount: 1_000n, token: address });

    const found: BalanceDifference[] = [];
    const errors: unknown[] = [];
    const indexer = await startIndexer({
      rpcUrls: [devnet.rpcUrl],
      database: await createUrl(),
      chain: { tokens: [{ name: "odd", address, decimals: 6 }] },
      spotCheck: { everyMs: 20, addresses: 5 },
      onBalanceDifference: (difference) => found.push(difference),
      logger: { ...silentLogger, error: (details) => errors.push(details) },
    });
    const watched = { blockchain: "devnet", token: "odd", address };
    await expectExact(indexer, devnet, watched);
    expect(found).toEqual([]);

    await client.writeContract({
      address,
      abi: misbehavingToken.abi,
      functionName: "setBalance",
      args: [odd.address, 1_007n],
    });
    await expect.poll(() => found.length, { timeout: 20_000 }).toBeGreaterThan(0);
    const block = Number(await client.getBlockNumber());
    const expected = {
      chain: "devnet",
      token: "odd",
      address: odd.address.toLowerCase(),
      block,
      indexed: 1_000n,
      onChain: 1_007n,
    };
    expect(found[0]).toEqual(expected);
    expect(errors[0]).toEqual(expected);
    expect(new Set(found.map((difference) => difference.address))).toEqual(
      new Set([expected.address]),
    );
    // It reports, and changes nothing.
    expect(await indexer.readBalance({ ...watched, address: odd.address })).toBe(1_000n);
  });

  it("continues, and the indexer with it, when a node returns no number or a listener throws", async () => {
    const devnet = await startChain();
    const { seller } = devnet.accounts;
    await devnet.mint({ to: seller.address, amount: 1_000n });
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const balances = (result: unknown) => changing("eth_call", (answer) => ({ ...answer, result }));
    const warnings: unknown[] = [];
    let told = 0;
    const indexer = await startIndexer({
      rpcUrls: [proxy.url],
      database: await createUrl(),
      spotCheck: { everyMs: 20, addresses: 5 },
      logger: { ...silentLogger, warn: (_details, message) => warnings.push(message) },
      onBalanceDifference() {
        told += 1;
        throw new Error("listener");
      },
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
    proxy.set(balances("0x"));
    await expect
      .poll(() => warnings, { timeout: 20_000 })
      .toContain("Balances could not be compared");
    proxy.set(balances(`0x${"7".padStart(64, "0")}`));
    await expect.poll(() => told, { timeout: 20_000 }).toBeGreaterThan(1);
    proxy.set(honest);
    await devnet.mint({ to: seller.address, amount: 1n });
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect((await indexer.status()).role).toBe("writer");
  });

  it("compares the balances of a token after one whose balances are not returned", async () => {
    const devnet = await startChain();
    const { client, accounts } = devnet;
    const { address: to } = accounts.seller;
    const address = await devnet.deployMisbehavingToken("honest");
    await devnet.mint({ to, amount: 1_000n });
    await devnet.mint({ to, amount: 1_000n, token: address });
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const found: string[] = [];
    const tokens = [
      { name: "usdt", address: devnet.token, decimals: 6 },
      { name: "odd", address, decimals: 6 },
    ];
    const indexer = await startIndexer({
      rpcUrls: [proxy.url],
      database: await createUrl(),
      chain: { tokens },
      spotCheck: { everyMs: 20, addresses: 5 },
      onBalanceDifference: ({ token }) => found.push(token),
    });
    await expectExact(indexer, devnet, { blockchain: "devnet", token: "odd", address });
    proxy.set(
      changing("eth_call", (answer, { params }) =>
        JSON.stringify(params[0]).includes(devnet.token.toLowerCase())
          ? { ...answer, result: "0x" }
          : answer,
      ),
    );
    await client.writeContract({
      address,
      abi: misbehavingToken.abi,
      functionName: "setBalance",
      args: [to, 1_007n],
    });
    await expect.poll(() => found, { timeout: 20_000 }).toContain("odd");
    expect(found).not.toContain("usdt");
  });

  it("compares the balance of an address after one whose balance is not returned", async () => {
    const devnet = await startChain();
    const { client, accounts } = devnet;
    const { buyer, seller } = accounts;
    const address = await devnet.deployMisbehavingToken("honest");
    // The last one is compared first.
    for (const { address: to } of [seller, buyer])
      await devnet.mint({ to, amount: 1_000n, token: address });
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const found: string[] = [];
    const indexer = await startIndexer({
      rpcUrls: [proxy.url],
      database: await createUrl(),
      chain: { tokens: [{ name: "odd", address, decimals: 6 }] },
      spotCheck: { everyMs: 20, addresses: 5 },
      onBalanceDifference: (difference) => found.push(difference.address),
    });
    await expectExact(indexer, devnet, { blockchain: "devnet", token: "odd", address });
    proxy.set(
      changing("eth_call", (answer, { params }) =>
        JSON.stringify(params[0]).includes(buyer.address.slice(2).toLowerCase())
          ? { ...answer, result: "0x" }
          : answer,
      ),
    );
    await client.writeContract({
      address,
      abi: misbehavingToken.abi,
      functionName: "setBalance",
      args: [seller.address, 1_007n],
    });
    await expect.poll(() => found, { timeout: 20_000 }).toContain(seller.address.toLowerCase());
  });

  it("reports no difference that a node's next answer corrects", async () => {
    const devnet = await startChain();
    const { seller } = devnet.accounts;
    await devnet.mint({ to: seller.address, amount: 1_000n });
    const proxy = await startFaultProxy(devnet.rpcUrl);
    // Every other answer comes from a node with the state of the next block.
    let asked = 0;
    const early = `0x${"7".padStart(64, "0")}`;
    const answerEarly = changing("eth_call", (answer) => {
      asked += 1;
      return asked % 2 === 1 ? { ...answer, result: early } : answer;
    });
    const found: BalanceDifference[] = [];
    const indexer = await startIndexer({
      rpcUrls: [proxy.url],
      database: await createUrl(),
      spotCheck: { everyMs: 20, addresses: 5 },
      onBalanceDifference: (difference) => found.push(difference),
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
    proxy.set(answerEarly);
    await expect.poll(() => asked, { timeout: 20_000 }).toBeGreaterThan(4);
    expect(found).toEqual([]);
  });

  it("reports no difference for tokens that emit every change, mints and burns included", async () => {
    const devnet = await startChain();
    const { buyer, seller } = devnet.accounts;
    await devnet.mint({ to: buyer.address, amount: 1_000n });
    const compared = new Set<string>();
    const proxy = await startFaultProxy(devnet.rpcUrl);
    proxy.set(async ({ calls, forward, reply }) => {
      const answers = await forward();
      // The address is at the end of a call of `balanceOf`.
      for (const { method, params } of calls)
        if (method === "eth_call") compared.add(JSON.stringify(params[0]).slice(-42, -2));
      reply(answers);
    });
    const found: BalanceDifference[] = [];
    const indexer = await startIndexer({
      rpcUrls: [proxy.url],
      database: await createUrl(),
      spotCheck: { everyMs: 20, addresses: 5 },
      onBalanceDifference: (difference) => found.push(difference),
    });
    const usdt = { address: devnet.token, abi: testUsdt0.abi, account: buyer } as const;
    await devnet.client.writeContract({ ...usdt, functionName: "burn", args: [10n] });
    const transfer = { ...usdt, functionName: "transfer", args: [seller.address, 3n] } as const;
    await devnet.client.writeContract(transfer);
    await expectExact(indexer, devnet, usdtOf(devnet));
    compared.clear();
    // Sender and recipient.
    const both = [buyer, seller].map(({ address }) => address.slice(2).toLowerCase());
    await expect.poll(() => [...compared].sort(), { timeout: 20_000 }).toEqual(both.sort());
    expect(found).toEqual([]);
  });
});
