import type { Address, Hex } from "@coinslot/protocol";
import { sql } from "kysely";
import type { LedgerReads } from "../ledger-context.ts";
import type { ChannelContract } from "./channel-state.ts";

/** Channels on which money is lost. There is an index of these, and none other is read. */
interface Losses extends ChannelContract {
  /** A smaller loss counts as none: it was worth no claim. */
  minLoss: bigint;
}

/** The signers of channels on which money is lost, some twice. */
export async function findOwingSigners(
  reads: LedgerReads,
  { limit, ...losses }: Losses & { limit: number },
): Promise<Address[]> {
  const rows = await selectOwing(reads, losses).limit(limit).execute();
  return rows.flatMap(({ signer }) => signer ?? []);
}

/** Whether a signer owes on another channel than this one. */
export async function owesElsewhere(
  reads: LedgerReads,
  { signer, channelId, ...losses }: Losses & { signer: Address; channelId: Hex },
): Promise<boolean> {
  const rows = await selectOwing(reads, losses).where("channel_id", "!=", channelId).execute();
  return rows.some((row) => row.signer === signer);
}

/** The signer is a scalar of each row: PostgreSQL without statistics joins with all terms. */
function selectOwing(
  { db, dialect: { amount } }: LedgerReads,
  { network, contract, minLoss }: Losses,
) {
  return (
    db
      .selectFrom("channels")
      .select(({ selectFrom }) =>
        selectFrom("channel_terms")
          .select("payer_authorizer")
          .whereRef("channel_terms.network", "=", "channels.network")
          .whereRef("channel_terms.contract", "=", "channels.contract")
          .whereRef("channel_terms.channel_id", "=", "channels.channel_id")
          .as("signer"),
      )
      .where("network", "=", network)
      .where("contract", "=", contract)
      // As in the index's own condition.
      .where(({ ref }) => sql<boolean>`${ref("lost")} > ${sql.lit(amount.encode(0n))}`)
      .where("lost", ">=", amount.encode(minLoss))
  );
}
