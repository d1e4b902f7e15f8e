import { type OperatorPlace, runOperation } from "../operators/run-operation.ts";
import {
  type DeadWebhook,
  deadOperation,
  leaveOperation,
  listOperation,
  type Replayed,
  replayOperation,
  type TakenEvent,
  takeOperation,
  testOperation,
  type WebhookStanding,
} from "./webhook-operations.ts";

/** Deliveries to replay: one event, or those of a time. */
export interface WebhookRange {
  /** Default: all receivers. */
  endpoint?: string | undefined;
  /** As in `webhook-id`. */
  id?: string | undefined;
  /** Unix milliseconds of the event: from, and before. */
  from?: number | undefined;
  to?: number | undefined;
  /** Default: delivered ones, too. */
  deadOnly?: boolean | undefined;
}

/**
 * The webhooks of a ledger, for its operator: from outside of its sellers, or by one that serves
 * its operator.
 *
 * @param place `sqlite:./file.db`, `postgres://…`, or a seller's address and key
 */
export function operateWebhooks(place: OperatorPlace) {
  return {
    /** All receivers, the former ones too. */
    list: async (): Promise<WebhookStanding[]> =>
      (await runOperation(place, listOperation, {})).endpoints,
    /** Those that died last first; `before` is the last one of the page before. */
    dead: async (page: {
      endpoint?: string | undefined;
      before?: Pick<DeadWebhook, "endedAt" | "seq"> | undefined;
      limit: number;
    }): Promise<DeadWebhook[]> => {
      const { endpoint, limit, before } = page;
      const last = before && { endedAt: before.endedAt, seq: before.seq };
      return (await runOperation(place, deadOperation, { endpoint, limit, before: last })).dead;
    },
    /** Makes deliveries pending again, step by step. Resolves with their number. */
    async replay(range: WebhookRange): Promise<number> {
      let replayed = 0;
      let after: number | undefined = 0;
      while (after !== undefined) {
        const step: Replayed = await runOperation(place, replayOperation, { ...range, after });
        replayed += step.replayed;
        after = step.next;
      }
      return replayed;
    },
    /** Sends `webhook.test` to one receiver, or to all. Resolves with their ids. */
    test: async (endpoint?: string): Promise<string[]> =>
      (await runOperation(place, testOperation, { endpoint })).endpoints,
    /**
     * Takes the next event of a listener, which begins with its first call. One at a time: what is
     * taken counts as delivered, and a listener that does not call for a minute counts as lost.
     */
    take: async (listener: string): Promise<TakenEvent[]> =>
      (await runOperation(place, takeOperation, { listener, limit: 1 })).events,
    /** Ends a listener. */
    leave: async (listener: string): Promise<void> => {
      await runOperation(place, leaveOperation, { listener });
    },
  };
}
