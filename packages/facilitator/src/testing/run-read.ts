import type * as z from "zod";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import type { Operation } from "../operators/operation.ts";
import type { SellerView } from "../reads/seller-view.ts";

/** Runs a reading operation on an open ledger, as its answer comes over the wire. */
export async function runRead<Argument extends z.ZodType, Result extends z.ZodType>(
  operation: Operation<Argument, Result>,
  ledger: LedgerContext,
  argument: z.input<Argument>,
  seller?: SellerView,
): Promise<z.output<Result>> {
  if (operation.access !== "read") throw new Error("not a read");
  const result = await operation.run(ledger, operation.argument.parse(argument), seller);
  return operation.result.parse(JSON.parse(JSON.stringify(result)));
}
