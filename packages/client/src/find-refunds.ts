import type { Network } from "@coinslot/protocol";
import { createChainReader, type RpcUrls } from "./chain/chain-reader.ts";
import { PaymentError } from "./payment-error.ts";
import {
  type FoundRefunds,
  findRefundsOn,
  type RefundablePayment,
} from "./refunds/find-refunds.ts";

const defaultTimeoutMs = 10_000;

/**
 * Finds the refunds of payments, by the payer's own nodes. `payingFetch.findRefunds` does it for
 * one payment.
 *
 * @returns the refunds of each payment, in the order of `payments`
 * @throws PaymentError `invalid_configuration`, also for a network without nodes;
 * `chain_unreadable` when none of them answers
 */
export async function findRefunds(options: {
  payments: readonly RefundablePayment[];
  rpcUrls: RpcUrls;
  /** Timeout of a question. Default 10,000. */
  timeoutMs?: number | undefined;
}): Promise<FoundRefunds[]> {
  const { payments, rpcUrls, timeoutMs = defaultTimeoutMs } = options;
  const problems: string[] = [];
  const chains = createChainReader({ rpcUrls, timeoutMs, problems });
  const networks = [...new Set(payments.map(({ network }) => network))];
  for (const network of networks) {
    if (chains.nodesOf(network).length === 0) problems.push(`rpcUrls has no node of ${network}`);
  }
  if (problems.length > 0) {
    throw new PaymentError("invalid_configuration", `findRefunds: ${problems.join("; ")}`);
  }
  const found = new Map<RefundablePayment, FoundRefunds>();
  const search = async (network: Network): Promise<void> => {
    const own = payments.filter((payment) => payment.network === network);
    const refunds = await findRefundsOn(chains.nodesOf(network), own);
    for (const [index, payment] of own.entries()) {
      const each = refunds[index];
      if (each !== undefined) found.set(payment, each);
    }
  };
  await Promise.all(networks.map(search));
  return payments.flatMap((payment) => found.get(payment) ?? []);
}
