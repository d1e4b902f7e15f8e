import { testUsdt0, transferBatch } from "@coinslot/devnet";
import { erc20Abi, maxUint256 } from "viem";
import { describe, expect, it } from "vitest";
import { enginesByDay } from "../testing/engines.ts";
import { expectExact } from "../testing/oracle.ts";
import { startChain, startIndexer, usdtOf } from "../testing/scene.ts";

describe.each(enginesByDay)("tokens, on $engine", ({ createUrl }) => {
  it.each(["live", "history"])(
    "are indexed exactly with every kind of transfer, in %s",
    async (when) => {
      const devnet = await startChain();
      const { client, accounts, token } = devnet;
      const { buyer, seller } = accounts;
      const database = await createUrl();
      const rpcUrls = [devnet.rpcUrl];
      const silent = await devnet.deployMisbehavingToken("returnsNothing");
      // The product's own. On a busy machine, a block of 10,001 transfers takes longer than other
      // tests' lease and time limit. Each attempt would lose the lease.
      const leaseMs = 15_000;
      const chain = {
        requestTimeoutMs: 20_000,
        tokens: [
          { name: "usdt", address: token, decimals: 6 },
          { name: "silent", address: silent, decimals: 6 },
        ],
      };
      const early =
        when === "live" ? await startIndexer({ rpcUrls, database, chain, leaseMs }) : undefined;

      const transfer = (of: `0x${string}`, to: `0x${string}`, amount: bigint) =>
        client.writeContract({
          account: buyer,
          address: of,
          abi: erc20Abi,
          functionName: "transfer",
          args: [to, amount],
          gas: 200_000n,
        });
      // The sum of all transfers exceeds a uint256, though no balance ever does.
      for (let round = 0; round < 2; round++) {
        await devnet.mint({ to: buyer.address, amount: maxUint256 });
        await transfer(token, buyer.address, maxUint256);
        await transfer(token, seller.address, 0n);
        await transfer(token, buyer.address, 0n);
        const burn = { address: token, abi: testUsdt0.abi, functionName: "burn" } as const;
        await client.writeContract({ ...burn, account: buyer, args: [maxUint256], gas: 200_000n });
      }
      await devnet.mint({ to: buyer.address, amount: 10n, token: silent });
      await transfer(silent, seller.address, 4n);
      const hash = await client.writeContract({
        address: await devnet.deployTransferBatch(),
        abi: transferBatch.abi,
        functionName: "run",
        args: [token, 10_000n, "0x1000000000000000000000000000000000000000", 7n],
      });
      if (when === "history") await devnet.mine(30);
      const indexer = early ?? (await startIndexer({ rpcUrls, database, chain, leaseMs }));
      await expectExact(indexer, devnet, usdtOf(devnet));
      await expectExact(indexer, devnet, { ...usdtOf(devnet), token: "silent", address: silent });
      const crowd = await indexer.readTransactionTransfers({
        ...usdtOf(devnet),
        transactionHash: hash,
      });
      expect(crowd.map(({ transferIndex }) => transferIndex)).toEqual(
        crowd.map((_, index) => index),
      );
      expect(crowd).toHaveLength(10_001);
    },
  );
});
