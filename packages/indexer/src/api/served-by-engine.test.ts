import { type Devnet, listen, startDevnet } from "@coinslot/devnet";
import express from "express";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { devnetChain } from "../chains/indexer-chain.ts";
import { createIndexer } from "../create-indexer.ts";
import { engines } from "../testing/engines.ts";
import { openKeyStore } from "./api-stores.ts";
import { createIndexerClient } from "./client/indexer-client.ts";
import { transferApi } from "./transfer-api.ts";

let devnet: Devnet;
beforeAll(async () => {
  devnet = await startDevnet();
});
afterAll(() => devnet.stop());

describe.each(engines)("the API before a real chain and $engine", ({ createUrl }) => {
  it("answers history, balances and events, and retracts what a reorganisation removed", async () => {
    const [holder, other] = devnet.accounts.others.slice(-2);
    if (holder === undefined || other === undefined) throw new Error("Too few accounts.");
    const indexer = createIndexer({
      chains: [devnetChain({ rpcUrls: [devnet.rpcUrl], pollIntervalMs: 20 })],
      database: await createUrl(),
    });
    onTestFinished(() => indexer.close());
    await indexer.start();
    const app = express().use(transferApi(indexer));
    const { url, close } = await listen(app);
    onTestFinished(close);
    const keys = await openKeyStore(await indexer.database());
    const { key } = await keys.create({ owner: "test", limit: { max: 10_000, windowMs: 1_000 } });
    const client = createIndexerClient({ url, apiKey: key });
    const owner = { blockchain: "devnet", token: "usdt", address: holder.address };
    await expect.poll(async () => (await client.getHealth()).status).toBe("healthy");

    const before = await client.getTokenBalances(owner);
    const amountBefore = BigInt(before.tokenBalance.amount);
    const abort = new AbortController();
    onTestFinished(() => abort.abort());
    const events = client.watchTokenTransfers(owner, { signal: abort.signal, lastEventId: "0" });
    const transactionHash = await devnet.mint({ to: holder.address, amount: 5_000n });
    await devnet.mint({ to: other.address, amount: 1n });

    const told = (await events.next()).value;
    expect(told).toMatchObject({ type: "transfer", transfer: { transactionHash, amount: "5000" } });
    const [newest] = (await client.getTokenTransfers({ ...owner, limit: 1 })).transfers;
    expect(newest).toMatchObject({ transactionHash, amount: "5000", finalized: false });
    const answer = { tokenBalance: { blockchain: "devnet", token: "usdt" } };
    expect(await client.getTokenBalances(owner)).toMatchObject({
      tokenBalance: { ...answer.tokenBalance, amount: (amountBefore + 5_000n).toString() },
    });
    const found = await client.getTransactionTransfers({ ...owner, txHash: transactionHash });
    expect(found.transfers).toMatchObject([{ to: holder.address.toLowerCase() }]);

    await devnet.reorg({ depth: 2 });
    expect((await events.next()).value).toMatchObject({
      type: "retraction",
      transfer: { transactionHash },
    });
    expect(await client.getTokenBalances(owner)).toEqual(before);
    const gone = client.getTransactionTransfers({ ...owner, txHash: transactionHash });
    await expect(gone).rejects.toMatchObject({ status: 404 });
    abort.abort();
  });
});
