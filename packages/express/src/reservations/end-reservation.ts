import { type AuthorizationId, authorizationKey, type ReleaseCause } from "@coinslot/protocol";
import type { Sale } from "../sale.ts";

/** Ends that this process is recording, by their authorization. */
export type Endings = Map<string, Promise<void>>;

/** Ends a sale without a delivery. A fault of the record is reported, and changes no answer. */
export function releaseSale(sale: Sale, cause: ReleaseCause): Promise<void> {
  return record(sale, () =>
    sale.facilitator.release(sale.reservation, cause, { hasRun: sale.progress.hasRun }),
  );
}

/**
 * Ends a sale whose answer has gone out. A fault of the record is reported, and changes no answer.
 */
export function deliverSale(sale: Sale): Promise<void> {
  sale.answers.drop(sale.payment.id);
  return record(sale, () => sale.facilitator.deliver(sale.reservation));
}

/**
 * Waits while the end of a sale is recorded here. A buyer that has its answer may send the same
 * payment again at once. The refusal then says that it was used, not that it is in use.
 */
export async function whenEnded(endings: Endings, id: AuthorizationId): Promise<void> {
  await endings.get(authorizationKey(id));
}

async function record({ endings, payment, settings }: Sale, end: () => Promise<void>) {
  const key = authorizationKey(payment.id);
  // A store of the seller's may also throw before it returns a promise.
  const ending = (async () => end())().catch(settings.onError);
  endings.set(key, ending);
  await ending;
  if (endings.get(key) === ending) endings.delete(key);
}
