import { auditOperations } from "../audit/audit-operations.ts";
import { booksOperations } from "../books/books-operations.ts";
import { booksReadOperations } from "../books/books-read-operations.ts";
import { receiptOperation } from "../books/receipt-operation.ts";
import { channelOperations } from "../channels/operators/channel-operations.ts";
import { readOperations } from "../reads/read-operations.ts";
import { refundOperations } from "../refunds/refund-operations.ts";
import { statsOperation } from "../stats/stats-operation.ts";
import { stopsOperation } from "../stops/stops-operation.ts";
import { visitsOperation } from "../visits/visits-operation.ts";
import { webhookOperations } from "../webhooks/webhook-operations.ts";
import type { Operation } from "./operation.ts";
import { getPaymentOperation } from "./payment-operation.ts";

/** Every operation that a seller serves to its operator. A further one is a further entry. */
export const operations: readonly Operation[] = [
  stopsOperation,
  getPaymentOperation,
  receiptOperation,
  ...refundOperations,
  ...channelOperations,
  ...webhookOperations,
  ...booksOperations,
  ...booksReadOperations,
  visitsOperation,
  ...readOperations,
  statsOperation,
  ...auditOperations,
];
