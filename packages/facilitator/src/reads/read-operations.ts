import { listBuyersOperation } from "./buyers-operation.ts";
import { listChainsOperation } from "./chains-operation.ts";
import { listPaymentsOperation } from "./list-payments-operation.ts";
import { listRelayersOperation } from "./relayers-operation.ts";
import { listRoutesOperation } from "./routes-operation.ts";
import { timelineOperation } from "./timeline/timeline-operation.ts";
import { todayOperation } from "./today/today-operation.ts";

/** The reads on which pages and commands of the operator stand. */
export const readOperations = [
  listPaymentsOperation,
  timelineOperation,
  todayOperation,
  listRelayersOperation,
  listChainsOperation,
  listRoutesOperation,
  listBuyersOperation,
];
