import { changeStop } from "../ledger/maintenance/stops.ts";
import { defineOperation } from "../operators/operation.ts";
import { stopChangeSchema, stopReportSchema } from "./stop.ts";

/** Sets or clears a stop switch. A running seller obeys it once it answers. */
export const stopsOperation = defineOperation({
  name: "stops",
  access: "write",
  argument: stopChangeSchema,
  result: stopReportSchema,
  run: ({ ledger, seller }, change) =>
    seller === undefined ? changeStop(ledger, change) : seller.stops.change(change, ledger),
});
