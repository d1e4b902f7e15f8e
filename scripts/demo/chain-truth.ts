import { type Devnet, testUsdt0 } from "@coinslot/devnet";
import type { TransferRecord } from "@coinslot/indexer";
import type { Address } from "@coinslot/protocol";

/** An account's balance by the token contract. */
export function balanceOf({ client, token }: Devnet, account: Address): Promise<bigint> {
  return client.readContract({
    address: token,
    abi: testUsdt0.abi,
    functionName: "balanceOf",
    args: [account],
  });
}

/** The newest transfers into and out of an account, by the chain's logs. */
async function newestTransfers({ client, token }: Devnet, account: Address, count: number) {
  const logs = await client.getContractEvents({
    address: token,
    abi: testUsdt0.abi,
    eventName: "Transfer",
    fromBlock: 0n,
    strict: true,
  });
  return logs
    .filter(({ args }) => args.from === account || args.to === account)
    .reverse()
    .slice(0, count)
    .map(({ transactionHash, args }) => describe({ transactionHash, ...args, amount: args.value }));
}

/** @throws when the records are not the newest transfers of the account, in their order */
export async function requireTrueTransfers(
  devnet: Devnet,
  account: Address,
  records: readonly TransferRecord[],
): Promise<void> {
  const expected = await newestTransfers(devnet, account, records.length);
  requireSame(records.map(describe), expected);
}

/** @throws when an amount is not what the account holds */
export async function requireTrueBalances(
  devnet: Devnet,
  amounts: readonly (readonly [account: Address, amount: string])[],
): Promise<void> {
  const held = await Promise.all(amounts.map(([account]) => balanceOf(devnet, account)));
  requireSame(
    amounts.map(([, amount]) => amount),
    held.map(String),
  );
}

function describe(transfer: {
  transactionHash: string;
  from: string | null;
  to: string | null;
  amount: string | bigint;
}): string {
  const { transactionHash, from, to, amount } = transfer;
  return `${amount} from ${from} to ${to} in ${transactionHash}`.toLowerCase();
}

function requireSame(bought: readonly string[], expected: readonly string[]): void {
  if (bought.length > 0 && bought.join("\n") === expected.join("\n")) return;
  throw new Error(`Bought:\n${bought.join("\n")}\nbut the chain says:\n${expected.join("\n")}`);
}
