import type { ReleaseCause } from "@coinslot/protocol";
import type { Sale } from "./sale.ts";

/** Ends a sale without a delivery. A fault of the record is told, and changes no answer. */
export async function releaseSale(sale: Sale, cause: ReleaseCause): Promise<void> {
  try {
    await sale.facilitator.release(sale.reservation, cause);
  } catch (error) {
    sale.settings.onError(error);
  }
}

/** Ends a sale whose answer has gone out. A fault of the record is told, and changes no answer. */
export async function deliverSale(sale: Sale): Promise<void> {
  try {
    await sale.facilitator.deliver(sale.reservation);
  } catch (error) {
    sale.settings.onError(error);
  }
}
