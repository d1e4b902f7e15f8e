import type { FacilitatorConfiguration } from "./configuration/facilitator-configuration.ts";
import { type FacilitatorContext, withEngine } from "./facilitator-context.ts";
import type { LedgerReads } from "./ledger/ledger-context.ts";
import { getRefund, listRefunds } from "./ledger/refunds/list-refunds.ts";
import type { Refunds } from "./refunds/refund.ts";
import { refundMethods } from "./refunds/refund-methods.ts";
import type { SettlementEvent } from "./settle/settlement-event.ts";

/** The refunds of a facilitator. Reads go beside its engine, as those of payments. */
export function refundsOf(facilitator: FacilitatorContext): Refunds {
  const write = <Result>(work: (methods: ReturnType<typeof refundMethods>) => Promise<Result>) =>
    withEngine(facilitator, ({ refunds }) => work(refundMethods(refunds)));
  const read = <Result>(work: (reads: LedgerReads) => Promise<Result>) =>
    withEngine(facilitator, ({ operatorReads }) => operatorReads.run(work));
  return {
    create: (request) => write((methods) => methods.create(request)),
    list: (filter) => read((reads) => listRefunds(reads, filter)),
    get: (id) => read((reads) => getRefund(reads, id)),
    approve: (id) => write((methods) => methods.approve(id)),
    markPaid: (request) => write((methods) => methods.markPaid(request)),
    cancel: (id) => write((methods) => methods.cancel(id)),
    exportUnsigned: (request) => write((methods) => methods.exportUnsigned(request)),
    importSigned: (signed) => write((methods) => methods.importSigned(signed)),
  };
}

/** True for an event of a refund's operation: it is no sale, and `refund_changed` tells of it. */
export function isOfFloat({ refunds }: FacilitatorConfiguration, event: SettlementEvent): boolean {
  if (!("authorization" in event)) return false;
  const { payer } = event.authorization;
  return payer === refunds.float || refunds.formerFloats.includes(payer);
}
