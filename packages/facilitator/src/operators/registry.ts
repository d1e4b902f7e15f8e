import { booksOperations } from "../books/books-operations.ts";
import { refundOperations } from "../refunds/refund-operations.ts";
import { stopsOperation } from "../stops/stops-operation.ts";
import { webhookOperations } from "../webhooks/webhook-operations.ts";
import type { Operation } from "./operation.ts";
import { getPaymentOperation } from "./payment-operation.ts";

/** Every operation that a seller serves to its operator. A further one is a further entry. */
export const operations: readonly Operation[] = [
  stopsOperation,
  getPaymentOperation,
  ...refundOperations,
  ...webhookOperations,
  ...booksOperations,
];
