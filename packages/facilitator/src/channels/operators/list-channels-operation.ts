import { isNetwork, toLowerHex } from "@coinslot/protocol";
import * as z from "zod";
import type { ChannelKey } from "../../ledger/channels/channel.ts";
import { findChannels } from "../../ledger/channels/find-channels.ts";
import { inSnapshot } from "../../ledger/ledger-reads.ts";
import { defineOperation } from "../../operators/operation.ts";
import { networkArgument } from "../../reads/wire-forms.ts";
import { channelRecordSchema, toChannelRecord } from "./channel-record.ts";

/** `network/contract/id` of the last channel of the page before. */
const cursorSchema = z
  .string()
  .max(200)
  .transform((text, context): ChannelKey | typeof z.NEVER => {
    const [, network = "", contract = "0x", channelId = "0x"] =
      /^(eip155:\d+)\/(0x[0-9a-f]{40})\/(0x[0-9a-f]{64})$/.exec(text) ?? [];
    if (isNetwork(network)) {
      return {
        network,
        contract: toLowerHex(hex(contract)),
        channelId: toLowerHex(hex(channelId)),
      };
    }
    context.addIssue("is no cursor of a page");
    return z.NEVER;
  });

function hex(text: string): `0x${string}` {
  return `0x${text.slice(2)}`;
}

export const channelsListArgument = z.strictObject({
  /**
   * `unclaimed`: with unclaimed money. `withdrawing`: of those, whose payer withdraws. `lost`: with
   * money that can no longer be claimed. Default `all`.
   */
  show: z.enum(["all", "unclaimed", "withdrawing", "lost"]).optional(),
  network: networkArgument.optional(),
  cursor: cursorSchema.optional(),
  /** Default 50. */
  limit: z.int().min(1).max(200).optional(),
});

export const channelsListResult = z.object({
  channels: z.array(channelRecordSchema),
  nextCursor: z.string().nullable(),
});

/** A page of channels. */
export type ChannelsList = z.infer<typeof channelsListResult>;

/** The channels of a ledger, page by page in the order of their ids. */
export const listChannelsOperation = defineOperation({
  name: "channels.list",
  access: "read",
  argument: channelsListArgument,
  result: channelsListResult,
  run: (reads, { show = "all", network, cursor, limit = 50 }) =>
    inSnapshot(reads, async (snapshot) => {
      const found = await findChannels(snapshot, {
        selection: show,
        network,
        after: cursor,
        limit: limit + 1,
      });
      const page = found.slice(0, limit);
      const last = page.at(-1)?.channel;
      return {
        channels: page.map((each) => toChannelRecord(each)),
        nextCursor:
          last === undefined || found.length <= limit
            ? null
            : `${last.network}/${last.contract}/${last.channelId}`,
      };
    }),
});
