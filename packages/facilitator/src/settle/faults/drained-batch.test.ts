import { testUsdt0 } from "@coinslot/devnet";
import { parseGwei } from "viem";
import { expect, it, vi } from "vitest";
import { settle, useSettlingDevnet } from "../../testing/settling-actions.ts";

const begin = useSettlingDevnet();

it("a wallet that is emptied in front of its batch costs at most 60,000 gas for each payment", async () => {
  const here = await begin();
  const { devnet, start, pay, balanceOf } = here;
  const { client, accounts, token } = devnet;
  const facilitator = await start();
  const payments = await Promise.all(Array.from({ length: 20 }, () => pay()));
  const all = await balanceOf(accounts.buyer.address);
  await devnet.setAutomine(false);
  const settling = payments.map((paid) => settle(facilitator, paid));
  await vi.waitFor(async () => expect((await client.getTxpoolStatus()).pending).toBe(1), 20_000);
  await client.writeContract({
    account: accounts.buyer,
    address: token,
    abi: testUsdt0.abi,
    functionName: "transfer",
    args: [accounts.deployer.address, all],
    gas: 100_000n,
    maxFeePerGas: parseGwei("500"),
    maxPriorityFeePerGas: parseGwei("400"),
  });
  await devnet.mine();
  const { transactions } = await client.getBlock();
  const receipts = await Promise.all(
    transactions.map((hash) => client.getTransactionReceipt({ hash })),
  );
  await devnet.setAutomine(true);
  await devnet.mine();
  const settled = await Promise.all(settling);
  expect(settled.filter(({ success }) => success)).toEqual([]);
  const gas = receipts.map(({ gasUsed }) => Number(gasUsed));
  expect(gas).toHaveLength(2);
  expect(gas[0]).toBeLessThan(60_000);
  expect(Number(gas[1]) / payments.length).toBeLessThan(60_000);
});
