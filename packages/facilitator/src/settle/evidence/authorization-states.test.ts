import { createRpcPool } from "@coinslot/chain";
import { startDevnet } from "@coinslot/devnet";
import type { Address } from "@coinslot/protocol";
import { expect, it } from "vitest";
import { readAuthorizationStates } from "./authorization-states.ts";

it("a malformed answer of one token leaves its own authorization unknown, and the others' known", async () => {
  const devnet = await startDevnet();
  const rpc = createRpcPool({ chainId: devnet.chainId, rpcUrls: [devnet.rpcUrl] });
  try {
    const stranger = "0x00000000000000000000000000000000000a55e7";
    const empty = "0x00000000000000000000000000000000000a55e8";
    // Returns 32 bytes of 0xff.
    await devnet.client.setCode({ address: stranger, bytecode: "0x5f195f5260205ff3" });
    const { buyer } = devnet.accounts;
    const assets: Address[] = [stranger, empty, devnet.token];
    const payments = assets.map((asset) => ({
      kind: "eip3009" as const,
      authorization: {
        network: devnet.network,
        asset,
        payer: buyer.address,
        nonce: `0x${"01".repeat(32)}` as const,
      },
    }));
    const blockNumber = await devnet.client.getBlockNumber();
    expect(await readAuthorizationStates({ rpc, payments, blockNumber })).toEqual([
      undefined,
      undefined,
      false,
    ]);
  } finally {
    rpc.close();
    await devnet.stop();
  }
});
