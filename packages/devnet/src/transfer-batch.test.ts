import { erc20Abi, parseEventLogs } from "viem";
import { expect, it } from "vitest";
import { transferBatch } from "../contracts/transfer-batch.generated.ts";
import { startDevnet } from "./devnet.ts";

it("emits 10,000 Transfers in one transaction", async () => {
  const devnet = await startDevnet();
  try {
    const { client, token } = devnet;
    const firstRecipient = "0x1000000000000000000000000000000000000000";
    const hash = await client.writeContract({
      address: await devnet.deployTransferBatch(),
      abi: transferBatch.abi,
      functionName: "run",
      args: [token, 10_000n, firstRecipient, 7n],
    });
    const receipt = await client.waitForTransactionReceipt({ hash });
    const transfers = parseEventLogs({ abi: erc20Abi, logs: receipt.logs, eventName: "Transfer" });
    expect(transfers).toHaveLength(10_001);
    const balance = await client.readContract({
      address: token,
      abi: erc20Abi,
      functionName: "balanceOf",
      args: [firstRecipient],
    });
    expect(balance).toBe(BigInt(Math.ceil(10_000 / 7)));
  } finally {
    await devnet.stop();
  }
});
