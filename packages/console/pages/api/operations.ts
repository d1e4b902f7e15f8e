import type {
  approveRefundOperation,
  booksCheckOperation,
  booksSumsOperation,
  cancelRefundOperation,
  channelTotalsOperation,
  claimChannelsOperation,
  createRefundOperation,
  DeadWebhook,
  getChannelOperation,
  listAuditOperation,
  listBuyersOperation,
  listChainsOperation,
  listChannelsOperation,
  listPaymentsOperation,
  listRefundsOperation,
  listRelayersOperation,
  listRoutesOperation,
  markRefundPaidOperation,
  receiptOperation,
  timelineOperation,
  todayOperation,
  visitsOperation,
  WebhookStanding,
} from "@coinslot/facilitator";
import type * as z from "zod";

/** An operation as it goes over the wire: JSON in and out. */
type Wire<Each> = Each extends { argument: infer Argument; result: infer Answer }
  ? {
      argument: Argument extends z.ZodType ? z.input<Argument> : never;
      result: Answer extends z.ZodType ? z.input<Answer> : never;
    }
  : never;

/** The console fills the key of the header in. */
type Keyed<Act extends { argument: unknown; result: unknown }> = {
  argument: Omit<Act["argument"], "idempotencyKey">;
  result: Act["result"];
};

/** Operations that read, by their names. */
export interface Reads {
  "audit.list": Wire<typeof listAuditOperation>;
  "books.check": Wire<typeof booksCheckOperation>;
  "books.sums": Wire<typeof booksSumsOperation>;
  "buyers.list": Wire<typeof listBuyersOperation>;
  "channels.get": Wire<typeof getChannelOperation>;
  "channels.list": Wire<typeof listChannelsOperation>;
  "channels.totals": Wire<typeof channelTotalsOperation>;
  "chains.list": Wire<typeof listChainsOperation>;
  "payments.list": Wire<typeof listPaymentsOperation>;
  "payments.receipt": Wire<typeof receiptOperation>;
  "payments.timeline": Wire<typeof timelineOperation>;
  "refunds.list": Wire<typeof listRefundsOperation>;
  "relayers.list": Wire<typeof listRelayersOperation>;
  "routes.list": Wire<typeof listRoutesOperation>;
  today: Wire<typeof todayOperation>;
  visits: Wire<typeof visitsOperation>;
  "webhooks.list": { argument: Record<string, never>; result: { endpoints: WebhookStanding[] } };
  "webhooks.dead": {
    argument: { endpoint?: string; before?: { endedAt: number; seq: number }; limit: number };
    result: { dead: DeadWebhook[] };
  };
}

/** Operations that act, by their names. */
export interface Acts {
  "books.close": { argument: { until: number }; result: { closedTo: number; isNew: boolean } };
  "channels.claim": Wire<typeof claimChannelsOperation>;
  "refunds.create": Keyed<Wire<typeof createRefundOperation>>;
  "refunds.approve": Wire<typeof approveRefundOperation>;
  "refunds.cancel": Wire<typeof cancelRefundOperation>;
  "refunds.paid": {
    argument: { id: string; transactionHash: string };
    result: Wire<typeof markRefundPaidOperation>["result"];
  };
  stops: {
    argument:
      | { operation: "set"; target: StopTarget; reason: string }
      | { operation: "clear"; target: StopTarget };
    result: { isKnown: boolean };
  };
  "webhooks.replay": {
    argument: { endpoint?: string; id?: string; deadOnly?: boolean; after: number };
    result: { replayed: number; next?: number };
  };
  "webhooks.test": { argument: { endpoint?: string }; result: { endpoints: string[] } };
}

/** A stop switch. The console checks the name. */
export interface StopTarget {
  kind: "network" | "route" | "float";
  name: string;
}

export type ReadName = keyof Reads;
export type ActName = keyof Acts;
export type Result<Name extends ReadName> = Reads[Name]["result"];
export type PaymentRow = Result<"payments.list">["payments"][number];
export type Timeline = Result<"payments.timeline">;
export type RefundRow = Result<"refunds.list">["refunds"][number];
export type AuditRow = Result<"audit.list">["entries"][number];
