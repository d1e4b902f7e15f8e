import { bytes32Schema, toLowerHex } from "@coinslot/protocol";
import * as z from "zod";
import { defineOperation } from "../../operators/operation.ts";
import { networkArgument } from "../../reads/wire-forms.ts";
import { claimReportSchema } from "./claim-by-operator.ts";

/**
 * Claims what is unclaimed and worth its gas: of all channels, or of one. A repetition claims
 * nothing that is on its way.
 */
export const claimChannelsOperation = defineOperation({
  name: "channels.claim",
  access: "seller",
  argument: z.strictObject({
    network: networkArgument.optional(),
    channel: bytes32Schema.optional(),
  }),
  result: z.object({ claims: z.array(claimReportSchema) }),
  timeoutMs: 60_000,
  async run({ claimChannels }, { network, channel }) {
    return { claims: await claimChannels({ network, channel: channel && toLowerHex(channel) }) };
  },
});
