import type { Address, Hex, Network } from "@coinslot/protocol";
import type { StoredAmount } from "@coinslot/storage";
import { sql } from "kysely";
import type { LedgerReads } from "../ledger-context.ts";
import type { ChannelContract } from "./channel-state.ts";

/** Sums over all channels of a token. Amounts are in the token's smallest unit. */
export interface ChannelSums {
  network: Network;
  contract: Address;
  token: Address;
  channels: number;
  charged: bigint;
  /** Money of buyers: at the escrow, and not claimed. */
  locked: bigint;
  lost: bigint;
}

interface SumsRow {
  network: Network;
  contract: Address;
  token: Address;
  channels: number | bigint | string;
  charged: StoredAmount;
  balance: StoredAmount;
  claimed: StoredAmount;
  lost: StoredAmount;
}

/** Reads all channels once. An operator's read, apart from those of buyers. */
export async function sumChannels({ db, dialect }: LedgerReads): Promise<ChannelSums[]> {
  const { sum, decode } = dialect.amount;
  const { rows } = await sql<SumsRow>`
    select channels.network, channels.contract, terms.token, count(*) as channels,
      ${sum(sql.ref("channels.charged"))} as charged, ${sum(sql.ref("channels.lost"))} as lost,
      ${sum(sql.ref("states.balance"))} as balance, ${sum(sql.ref("states.claimed"))} as claimed
    from channels
      join channel_terms as terms on terms.network = channels.network
        and terms.contract = channels.contract and terms.channel_id = channels.channel_id
      left join channel_states as states on states.network = channels.network
        and states.contract = channels.contract and states.channel_id = channels.channel_id
    group by channels.network, channels.contract, terms.token
    order by channels.network, channels.contract, terms.token
  `.execute(db);
  return rows.map(({ network, contract, token, ...row }) => ({
    network,
    contract,
    token,
    channels: Number(row.channels),
    charged: decode(row.charged),
    locked: decode(row.balance) - decode(row.claimed),
    lost: decode(row.lost),
  }));
}

const page = 1_000;

/**
 * Money of buyers at an escrow, not claimed, over all channels of a contract. It reads a page at a
 * time: requests go on in between.
 */
export async function sumLocked(
  { db, dialect }: LedgerReads,
  { network, contract }: ChannelContract,
): Promise<bigint> {
  const { decode } = dialect.amount;
  let sum = 0n;
  for (let after: Hex | undefined = "0x"; after !== undefined; ) {
    const rows: { channel_id: Hex; balance: StoredAmount; claimed: StoredAmount }[] = await db
      .selectFrom("channel_states")
      .select(["channel_id", "balance", "claimed"])
      .where("network", "=", network)
      .where("contract", "=", contract)
      .where("channel_id", ">", after)
      .orderBy("channel_id")
      .limit(page)
      .execute();
    for (const { balance, claimed } of rows) sum += decode(balance) - decode(claimed);
    after = rows.length < page ? undefined : rows.at(-1)?.channel_id;
  }
  return sum;
}
