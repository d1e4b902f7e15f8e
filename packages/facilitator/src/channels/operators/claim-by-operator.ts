import type { Hex, Network } from "@coinslot/protocol";
import * as z from "zod";
import { OperationRefusedError } from "../../operators/operation-refused-error.ts";
import { type Money, moneySchema, toMoney } from "../../reads/wire-forms.ts";
import type { ClaimCandidate } from "../claims/choose-claims.ts";
import type { Channels } from "../start-channels.ts";

export const claimReportSchema = z.object({
  network: z.string(),
  /** Channels whose claim is signed, on the disk, and on its way. */
  sent: z.number(),
  /** Amounts that these claims bring, by token. */
  amounts: z.array(moneySchema),
  refused: z.array(z.object({ channel: z.string(), error: z.string() })),
  /**
   * Why others wait: `no_relayer`, `too_dear`, `no_funds`, `refused`, `no_signature`, or `no_key`
   * of their authorizer.
   */
  waiting: z.string().nullable(),
});

/** Claims of one network. */
export type ChannelClaims = z.infer<typeof claimReportSchema>;

/** Claims in a running process, for its operator. */
export type ClaimByOperator = (asked: {
  network: Network | undefined;
  channel: Hex | undefined;
}) => Promise<ChannelClaims[]>;

/** @param channels `undefined`: the process sells by none */
export function claimByOperator(
  channels: Channels | undefined,
  networks: readonly Network[],
): ClaimByOperator {
  return async ({ network, channel }) => {
    const wanted = networks.filter((each) => network === undefined || each === network);
    const served = wanted.flatMap((each) => {
      const found = channels?.of(each);
      return found === undefined ? [] : [[each, found] as const];
    });
    if (served.length === 0) {
      throw new OperationRefusedError("no_channels", "This seller has no channels there");
    }
    const claims: ChannelClaims[] = [];
    for (const [each, { claim }] of served) {
      const { sent, refused, waiting } = await claim({ only: channel });
      claims.push({
        network: each,
        sent: sent.length,
        amounts: sumByToken(each, sent),
        refused: refused.map(({ candidate, error }) => ({
          channel: candidate.channel.channelId,
          error,
        })),
        waiting: waiting ?? null,
      });
    }
    return claims;
  };
}

function sumByToken(network: Network, rows: readonly ClaimCandidate[]): Money[] {
  const sums = new Map<ClaimCandidate["config"]["token"], bigint>();
  for (const { config, gain } of rows) {
    sums.set(config.token, (sums.get(config.token) ?? 0n) + gain);
  }
  return [...sums].map(([token, sum]) => toMoney(network, token, sum));
}
