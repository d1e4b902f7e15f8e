import { blockByNumber, createRpcPool, systemClock } from "@coinslot/chain";
import { expect, it, onTestFinished } from "vitest";
import { headerOf } from "../rpc/block-header.ts";
import { changing, honest, startFaultProxy } from "../testing/fault-proxy.ts";
import { startUsedChain } from "../testing/scene.ts";
import { createTrustedPool } from "../trusted-pool.ts";
import { confirmBlocks } from "./anchored-request.ts";

it("takes no header without its root as consent, while the third endpoint is silent", async () => {
  const devnet = await startUsedChain();
  const [second, third] = [
    await startFaultProxy(devnet.rpcUrl),
    await startFaultProxy(devnet.rpcUrl),
  ];
  const { chainId } = devnet;
  const rpcUrls = [devnet.rpcUrl, second.url, third.url];
  const pool = createRpcPool({ chainId, rpcUrls, patienceMs: 0 });
  onTestFinished(() => pool.close());
  const outvoted = new Set<number>();
  const context = {
    pool: createTrustedPool(pool, { chainId, outvoted, clock: systemClock }),
    outvoted,
  };
  const [first] = pool.endpoints;
  if (first === undefined) throw new Error("No endpoint");
  const outcomes = await first.requestMany([blockByNumber(9n), blockByNumber(10n)]);
  const anchor = headerOf(first, outcomes[0], 9);
  const blocks = [headerOf(first, outcomes[1], 10)];
  const confirm = () =>
    confirmBlocks(context, first, { anchor, blocks, signal: new AbortController().signal });
  third.cut();
  second.set(
    changing("eth_getBlockByNumber", (answer) => ({
      ...answer,
      result: Object.assign({}, answer.result, { receiptsRoot: undefined }),
    })),
  );
  await expect(confirm()).rejects.toThrow("Endpoint 3 does not confirm");
  second.set(honest);
  await confirm();
});
