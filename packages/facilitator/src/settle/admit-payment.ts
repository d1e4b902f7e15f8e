import { type BlockWatcher, RpcError } from "@coinslot/chain";
import { FacilitatorError, type Network } from "@coinslot/protocol";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { findCommitted, findCommittedDeposits } from "../ledger/payments/committed-balance.ts";
import { reservePayment } from "../ledger/payments/reserve-payments.ts";
import type { ReserveResult, ReserveWish } from "../ledger/payments/reserve-request.ts";
import type { SettlementNetwork } from "./context.ts";
import { maxSearchedBlocks } from "./evidence/find-executions.ts";
import { nodeIsBehind } from "./unavailable-errors.ts";

/** Maximum of a payer's open payments, and of its deposits, that are read. Others count. */
const maxLookedAt = 100;

/** The ledger, and the chains that it is compared with. */
export interface AdmissionContext {
  ledger: LedgerContext;
  settlements: ReadonlyMap<
    Network,
    {
      network: Partial<Pick<SettlementNetwork, "trialFloor" | "debited">> & {
        watcher?: Pick<BlockWatcher, "latest">;
      };
    }
  >;
}

/**
 * Reserves a payment, or returns the reason against it. Reads the chain again before it returns
 * that a payer has committed too much.
 *
 * A payment that a block has executed stays open until that block is read and deep enough. A
 * balance read meanwhile lacks its amount already, so it must not count as committed besides. A
 * node that is about to have a block may return the balance behind it for the block before it:
 * anvil does. So the balance is read again as well, by the number of its block.
 *
 * @throws FacilitatorError where the payment was tried on a block that is too old, or the chain
 * cannot be read.
 */
export async function admitPayment(
  context: AdmissionContext,
  tried: ReserveWish,
): Promise<ReserveResult> {
  const { ledger, settlements } = context;
  const { id, balance } = tried;
  const { trialFloor: floor, watcher } = settlements.get(id.network)?.network ?? {};
  if (balance && floor && !floor.admits(balance.blockNumber)) throw nodeIsBehind();
  const wish = boundSearch(tried, watcher?.latest()?.number);
  const result = await reservePayment(ledger, wish);
  if (result.outcome !== "over_committed") return result;
  try {
    const seen = await lookAgain(context, wish);
    if (seen === undefined) return result;
    return await reservePayment(ledger, { ...wish, balance: seen.balance }, seen.debited);
  } catch (cause) {
    if (!(cause instanceof RpcError)) throw cause;
    throw new FacilitatorError("The chain cannot be read at the moment", {
      kind: "unavailable",
      cause,
    });
  }
}

/**
 * The search for an execution begins at the trial's block, which is one node's word. An execution
 * far below the head is none of this sale. The head is one node's word, too: the balance stays that
 * of its own block, behind which the payer's other payments count.
 */
function boundSearch(wish: ReserveWish, head: bigint | undefined): ReserveWish {
  const { balance } = wish;
  const oldest = (head ?? 0n) - maxSearchedBlocks;
  if (balance === undefined || balance.blockNumber >= oldest) return wish;
  return { ...wish, unusedAtBlock: oldest };
}

/**
 * The payer's open payments and deposits that were executed or cancelled before its balance was
 * read, and that balance. `undefined` where the others alone exceed it.
 *
 * None is a result like any other. The outcome of an executed payment may have been recorded since
 * the refusal: it is not open any more, and the same reservation fits now.
 */
async function lookAgain(
  { ledger, settlements }: AdmissionContext,
  { id, balance, value }: ReserveWish,
): Promise<{ debited: readonly string[]; balance: typeof balance } | undefined> {
  const debited = settlements.get(id.network)?.network.debited;
  if (balance === undefined || debited === undefined) return undefined;
  const payments = [
    ...(await findCommitted(ledger, { limit: maxLookedAt, ...id })),
    ...(await findCommittedDeposits(ledger, { limit: maxLookedAt, ...id })),
  ];
  const { blockNumber } = balance;
  const read = await debited.find({ payments, of: id, blockNumber });
  const amount = [read.balance ?? 0n, balance.amount].reduce((a, b) => (a > b ? a : b));
  const others = payments.filter(
    (payment) => payment.authorization.nonce !== id.nonce && !read.debited.includes(payment.id),
  );
  const committed = others.reduce((sum, payment) => sum + payment.value, value);
  return committed > amount
    ? undefined
    : { debited: read.debited, balance: { amount, blockNumber } };
}
