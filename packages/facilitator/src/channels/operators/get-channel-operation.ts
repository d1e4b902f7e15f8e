import * as z from "zod";
import { findChargedDays, findSteps } from "../../ledger/channels/channel-history.ts";
import { findByPrefix } from "../../ledger/channels/find-channels.ts";
import { inSnapshot } from "../../ledger/ledger-reads.ts";
import { defineOperation } from "../../operators/operation.ts";
import { OperationRefusedError } from "../../operators/operation-refused-error.ts";
import { moneySchema, toMoney } from "../../reads/wire-forms.ts";
import { channelRecordSchema, toChannelRecord } from "./channel-record.ts";

const maxSteps = 50;
const maxDays = 90;
const dayMs = 86_400_000;

export const channelResult = z.object({
  channel: channelRecordSchema,
  /**
   * Claims, refunds, and deposits that requests brought, the newest first. Ended claims and
   * deposits are kept for 30 days.
   */
  steps: z.array(
    z.object({
      at: z.string(),
      /** `claim`, `refund` or `deposit`. A later release may have more. */
      kind: z.string(),
      /** `sent`, `done` or `failed`; before that of a refund `locked`, of a deposit `queued`. */
      state: z.string(),
      /** Of a claim the sum over the channel's life up to which it asks. */
      amount: moneySchema.nullable(),
      transaction: z.string().nullable(),
      block: z.number().nullable(),
      reason: z.string().nullable(),
    }),
  ),
  /** Charges by day, the newest first. */
  days: z.array(z.object({ day: z.string(), charges: z.number(), charged: moneySchema })),
});

/** A channel with its history. */
export type ChannelDetails = z.infer<typeof channelResult>;

/** One channel of a ledger, by its id or the beginning of it, and what happened on it. */
export const getChannelOperation = defineOperation({
  name: "channels.get",
  access: "read",
  argument: z.strictObject({
    id: z
      .string()
      .toLowerCase()
      .regex(/^0x[0-9a-f]{4,64}$/, "is no channel's id, and no beginning of one"),
  }),
  result: channelResult,
  run: (reads, { id }) =>
    inSnapshot(reads, async (snapshot) => {
      const [known, other] = await findByPrefix(snapshot, id);
      if (known === undefined) {
        throw new OperationRefusedError("unknown_channel", "The ledger has no such channel");
      }
      if (other !== undefined) {
        throw new OperationRefusedError("ambiguous", "More than one channel begins with this id");
      }
      const { channel, config } = known;
      const money = (value: bigint) => toMoney(channel.network, config.token, value);
      const steps = await findSteps(snapshot, { ...channel, config, limit: maxSteps });
      const days = await findChargedDays(snapshot, { ...channel, limit: maxDays });
      return {
        channel: toChannelRecord(known),
        steps: steps.map(({ at, kind, state, amount, hash, blockNumber, reason }) => ({
          at: new Date(at).toISOString(),
          kind,
          state,
          amount: amount === undefined ? null : money(amount),
          transaction: hash ?? null,
          block: blockNumber ?? null,
          reason: reason ?? null,
        })),
        days: days.map(({ day, count, amount }) => ({
          day: new Date(day * dayMs).toISOString().slice(0, 10),
          charges: count,
          charged: money(amount),
        })),
      };
    }),
});
