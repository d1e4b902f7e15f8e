import { RpcError, type RpcPool } from "@coinslot/chain";
import { type LedgerReader, openLedgerReader } from "@coinslot/facilitator";
import type { ConfiguredNetwork } from "@coinslot/hosting/environment";
import type { Address } from "@coinslot/protocol";
import { isDatabaseError } from "@coinslot/storage";
import { numberToHex, pad, toEventSelector } from "viem";
import * as z from "zod";
import type { Check } from "./check.ts";

/** Blocks of the one query: most nodes grant this many. */
const searchedBlocks = 1_000;
/** Transactions whose receipts are read, the newest. */
const maxReceipts = 10;
const pageSize = 1_000;
const maxPages = 10;
const dayMs = 24 * 3_600_000;

const transfer = toEventSelector("Transfer(address,address,uint256)");
const authorizationUsed = toEventSelector("AuthorizationUsed(address,bytes32)");

const lower = z.string().transform((text) => text.toLowerCase());
const quantity = z
  .string()
  .regex(/^0x[0-9a-f]+$/i)
  .transform(Number);
const logSchema = z.object({ address: lower, topics: z.array(lower), transactionHash: lower });
const logsSchema = z.array(logSchema);
const receiptSchema = z.object({ logs: logsSchema }).nullable();
const blockSchema = z.object({ timestamp: quantity });

/** Payments to `PAY_TO`, and the ledger that should have them. */
export interface Recipient {
  payTo: Address;
  ledgerUrl: string;
}

/**
 * Looks for payments to the seller that its ledger does not know. Another seller's ledger then has
 * the same recipient, and one transfer can buy at both.
 *
 * Only payments of the last blocks can be seen. They are transfers to the recipient whose payer's
 * authorization was used in the same transaction. A plain transfer is no payment.
 */
export async function checkRecipient(options: {
  network: ConfiguredNetwork;
  assets: readonly Address[];
  pool: RpcPool;
  recipient: Recipient;
}): Promise<Check[]> {
  const { network, assets, pool, recipient } = options;
  const subject = { topic: "recipient", about: network.name } as const;
  if (assets.length === 0) return [];
  try {
    const head = quantity.parse(await pool.request({ method: "eth_blockNumber", params: [] }));
    const from = Math.max(0, head - searchedBlocks + 1);
    const logs = await findTransfers({ ...options, from, head });
    if (logs.length === 0) return [{ ...subject, status: "ok", found: "No new payments" }];
    const block = await pool.request({
      method: "eth_getBlockByNumber",
      params: [numberToHex(from), false],
    });
    const createdFrom = 1_000 * blockSchema.parse(block).timestamp - dayMs;
    const known = await readKnown(recipient.ledgerUrl, { network, createdFrom });
    if (known === undefined) {
      const found = "The ledger has too many payments to compare them with the chain's";
      return [{ ...subject, status: "skipped", found }];
    }
    const [unknown, ...others] = await findUnknown({ pool, logs, known, payTo: recipient.payTo });
    if (unknown === undefined) {
      return [{ ...subject, status: "ok", found: "The ledger knows the newest payments" }];
    }
    const count = others.length === 0 ? "a payment" : `${others.length + 1} payments`;
    const found = `${recipient.payTo} got ${count} in the last ${searchedBlocks} blocks that the ledger does not know, such as ${unknown}. If another ledger sells to this address, one payment can buy at both: give each ledger its own PAY_TO, or all sellers one ledger.`;
    return [{ ...subject, status: "warning", found }];
  } catch (error) {
    // A ledger that cannot be read has a finding of its own.
    if (isDatabaseError(error)) return [];
    if (!(error instanceof RpcError || error instanceof z.ZodError)) throw error;
    const found = "The node does not return the transfers of the last blocks";
    return [{ ...subject, status: "skipped", found }];
  }
}

async function findTransfers(options: {
  assets: readonly Address[];
  pool: RpcPool;
  recipient: Recipient;
  from: number;
  head: number;
}) {
  const { assets, pool, recipient, from, head } = options;
  const filter = {
    address: assets,
    topics: [transfer, null, pad(recipient.payTo).toLowerCase()],
    fromBlock: numberToHex(from),
    toBlock: numberToHex(head),
  };
  return logsSchema.parse(await pool.request({ method: "eth_getLogs", params: [filter] }));
}

/** Payments of a ledger, by the hashes of their transactions and by their authorizations. */
interface KnownPayments {
  hashes: ReadonlySet<string>;
  authorizations: ReadonlySet<string>;
}

/** `undefined` where there are too many. */
async function readKnown(
  url: string,
  options: { network: ConfiguredNetwork; createdFrom: number },
): Promise<KnownPayments | undefined> {
  const reader = await openLedgerReader({ url });
  try {
    return await readPages(reader.payments, options);
  } finally {
    await reader.close();
  }
}

async function readPages(
  payments: LedgerReader["payments"],
  { network: { network }, createdFrom }: { network: ConfiguredNetwork; createdFrom: number },
): Promise<KnownPayments | undefined> {
  const hashes = new Set<string>();
  const authorizations = new Set<string>();
  let cursor: string | undefined;
  for (let count = 0; count < maxPages; count += 1) {
    const page = await payments.list({ network, createdFrom, limit: pageSize, cursor });
    for (const { authorization, inclusion } of page.payments) {
      if (inclusion) hashes.add(inclusion.transactionHash.toLowerCase());
      const { asset, payer, nonce } = authorization;
      authorizations.add(`${asset}${pad(payer)}${nonce}`.toLowerCase());
    }
    cursor = page.nextCursor;
    if (cursor === undefined) return { hashes, authorizations };
  }
  return undefined;
}

/** Hashes of the newest transactions with a payment to the seller that the ledger does not know. */
async function findUnknown(options: {
  pool: RpcPool;
  logs: z.infer<typeof logsSchema>;
  known: KnownPayments;
  payTo: Address;
}): Promise<string[]> {
  const { pool, logs, known, payTo } = options;
  const hashes = new Set(logs.map(({ transactionHash }) => transactionHash));
  const foreign = [...hashes].filter((hash) => !known.hashes.has(hash)).slice(-maxReceipts);
  const answers = await pool.requestMany(
    foreign.map((hash) => ({ method: "eth_getTransactionReceipt", params: [hash] })),
  );
  const to = pad(payTo).toLowerCase();
  return foreign.filter((_, index) => {
    const answer = answers[index];
    const receipt = answer?.ok ? receiptSchema.parse(answer.result) : null;
    const ours = (receipt?.logs ?? []).filter(
      ({ topics }) => topics[0] === transfer && topics[2] === to,
    );
    return receipt?.logs.some(
      ({ address, topics: [event, payer, nonce] }) =>
        event === authorizationUsed &&
        ours.some((paid) => paid.address === address && paid.topics[1] === payer) &&
        !known.authorizations.has(`${address}${payer}${nonce}`),
    );
  });
}
