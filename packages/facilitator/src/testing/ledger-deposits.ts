import type { Hex } from "@coinslot/protocol";
import { numberToHex } from "viem";
import {
  type ChannelDeposit,
  type NewDeposit,
  type OpenDeposit,
  readDeposit,
} from "../ledger/channels/channel-deposits.ts";
import { requeueDeposit, type WantedDeposit } from "../ledger/channels/queue-deposit.ts";
import type { LedgerContext } from "../ledger/ledger-context.ts";

export const word = (value: number): Hex => numberToHex(value, { size: 32 });
export const account = (value: number): Hex => numberToHex(value, { size: 20 });
export const depositPlace = { network: "eip155:9745", contract: account(0x4020) } as const;
const bounds = {
  balance: 1_000n,
  limits: { perSigner: 3, failedPerPayer: 2 },
  callerGasPerHour: 1_000_000n,
};
let names = 0;

/** A deposit of 100 units, of a payer that has 1,000, into a channel of its own. */
export function newDeposit(parts: Partial<NewDeposit> = {}): WantedDeposit {
  names += 1;
  return {
    ...depositPlace,
    channelId: word(names),
    token: account(5),
    payer: account(1),
    nonce: word(names),
    signer: account(2),
    amount: 100n,
    validBefore: 4_000_000_000n,
    payerHasCode: false,
    data: "0xabcd",
    sinceNumber: 7,
    gas: 250_000n,
    caller: undefined,
    ...bounds,
    ...parts,
  };
}

export async function readDepositRow(
  ledger: LedgerContext,
  deposit: NewDeposit,
): Promise<ChannelDeposit> {
  const row = await readDeposit(ledger, deposit);
  if (row === undefined) throw new Error("No row");
  return row;
}

/** Brings a deposit back to the queue, by a balance of block 9. */
export function requeue(
  ledger: LedgerContext,
  row: ChannelDeposit,
  state: "open" | "gone" = "gone",
): ReturnType<typeof requeueDeposit> {
  const deposit: OpenDeposit = { ...row, transaction: { state } };
  return requeueDeposit(ledger, deposit, { ...bounds, sinceNumber: 9 });
}
