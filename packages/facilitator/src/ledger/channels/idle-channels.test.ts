import type { Hex } from "@coinslot/protocol";
import { CompiledQuery, type KyselyPlugin, sql, type Transaction } from "kysely";
import { numberToHex } from "viem";
import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import type { LedgerContext } from "../ledger-context.ts";
import { findCommitments, findCommittedDeposits } from "../payments/committed-balance.ts";
import type { LedgerSchema } from "../schema.ts";
import { evictChannelAnswers, forgetChannelAnswers, readChannelAnswer } from "./channel-answers.ts";
import { findSentClaims } from "./channel-claims.ts";
import { dropDue, findDues } from "./channel-dues.ts";
import { findChargedDays, findSteps } from "./channel-history.ts";
import { findLastSettle, findReceivers } from "./channel-settles.ts";
import { findKnown, findMoving } from "./channel-state.ts";
import { readWatch } from "./channel-watch.ts";
import { chargeChannel } from "./charge-channel.ts";
import { findClaimable } from "./claimable.ts";
import { deliverCharges, lowerCharge } from "./end-charge.ts";
import { findByPrefix, findChannels } from "./find-channels.ts";
import { mirrorChannel } from "./mirror-channel.ts";
import { forgetDeposits } from "./move-deposit.ts";
import { openChannel, readChannel } from "./open-channel.ts";
import { findOwingSigners, owesElsewhere } from "./owing.ts";
import { queueDeposit } from "./queue-deposit.ts";
import { readMirrored } from "./read-mirrored.ts";
import { releaseRun, reserveRun } from "./reserve-run.ts";
import { countRun, giveUpCharge, takeCharge } from "./resume-charge.ts";

const idle = 100_000;
const network = "eip155:9745";
const contract: Hex = `0x${"40".repeat(20)}`;
const keyOf = (id: number) =>
  ({ network, contract, channelId: numberToHex(id, { size: 32 }) }) as const;
const config = {
  payer: contract,
  payerAuthorizer: contract,
  receiver: contract,
  receiverAuthorizer: contract,
  token: contract,
  withdrawDelay: 900,
  salt: numberToHex(0, { size: 32 }),
} as const;

/** A charge of 1 on a channel that was never charged. */
const chargeOf = (id: number) => ({
  ...keyOf(id),
  id: `charge ${id}`,
  seen: 0n,
  base: 0n,
  amount: 1n,
  ceiling: 1n,
  signature: "0x12" as const,
  fingerprint: "GET /",
});

const reading = { balance: 100n, totalClaimed: 0n, withdrawal: undefined, refundNonce: 0n };

/** Each statement of a request and of the planner, with the number of channels that it is about. */
const works: [string, number, (ledger: LedgerContext) => Promise<unknown>][] = [
  ["a look-up", 1, (ledger) => readChannel(ledger, keyOf(7))],
  ["a look-up with its mirror", 1, (ledger) => readMirrored(ledger, keyOf(7))],
  [
    "a new channel",
    1,
    (ledger) => openChannel(ledger, { ...keyOf(idle + 1), config, totalClaimed: 0n }),
  ],
  ["a charge", 1, async (ledger) => expect(await chargeChannel(ledger, chargeOf(7))).toBe(true)],
  [
    "250 charges",
    250,
    async (ledger) => {
      const charges = Array.from({ length: 250 }, (_, n) => chargeChannel(ledger, chargeOf(n + 1)));
      expect(new Set(await Promise.all(charges))).toEqual(new Set([true]));
    },
  ],
  [
    "a reserved run",
    1,
    async (ledger) => {
      const run = { ...keyOf(7), seen: 0n, token: "mine" };
      expect(await reserveRun(ledger, run)).toBe(true);
      await releaseRun(ledger, run);
    },
  ],
  [
    "a delivery and a reversal",
    2,
    async (ledger) => {
      await chargeChannel(ledger, chargeOf(7));
      await deliverCharges(ledger, { ...chargeOf(7), charges: [chargeOf(7)] });
      expect(await lowerCharge(ledger, { ...chargeOf(7), base: 0n, amount: 0n })).toBe(false);
    },
  ],
  [
    "an answer that is lost and taken over",
    1,
    async (ledger) => {
      const answer = { sealed: Buffer.from("sealed"), expiresAt: ledger.now() + 1_000 };
      const charge = { ...chargeOf(7), answer };
      await chargeChannel(ledger, charge);
      await giveUpCharge(ledger, charge);
      expect(await takeCharge(ledger, charge)).toBe(true);
      expect(await countRun(ledger, charge)).toBe(true);
      expect(await readChannelAnswer(ledger, charge)).toBeDefined();
      await forgetChannelAnswers(ledger);
      await evictChannelAnswers(ledger, { ...charge, channelIds: [charge.channelId] });
    },
  ],
  [
    "signers that owe",
    1,
    async (ledger) => {
      const losses = { network, contract, minLoss: 1n } as const;
      await ledger.write((transaction) =>
        transaction
          .updateTable("channels")
          .set({ lost: ledger.dialect.amount.encode(3n) })
          .where("network", "=", network)
          .where("contract", "=", contract)
          .where("channel_id", "=", keyOf(7).channelId)
          .execute(),
      );
      expect(await findOwingSigners(ledger, { ...losses, limit: 100 })).toEqual([contract]);
      const signer = { ...losses, signer: contract };
      expect(await owesElsewhere(ledger, { ...signer, ...keyOf(8) })).toBe(true);
      expect(await owesElsewhere(ledger, { ...signer, ...keyOf(7) })).toBe(false);
    },
  ],
  [
    "a deposit of a payer with code",
    1,
    async (ledger) => {
      const deposit = {
        ...keyOf(idle + 1),
        token: contract,
        payer: numberToHex(7, { size: 20 }),
        nonce: keyOf(idle + 1).channelId,
        signer: numberToHex(1, { size: 20 }),
        amount: 1n,
        validBefore: 9n,
        payerHasCode: true,
        data: "0x12" as const,
        sinceNumber: 1,
        gas: 1n,
        caller: "shop",
        balance: 1n,
        limits: { perSigner: 2, failedPerPayer: 2 },
        callerGasPerHour: 2n,
      };
      expect(await queueDeposit(ledger, deposit)).toEqual({ outcome: "queued" });
      const { network: of, token: asset, payer } = deposit;
      const balanceKey = { network: of, asset, payer };
      expect(await findCommittedDeposits(ledger, { ...balanceKey, limit: 9 })).toHaveLength(1);
      const commitments = await ledger.write((transaction) =>
        findCommitments({
          transaction,
          dialect: ledger.dialect,
          requests: [{ id: { ...balanceKey, nonce: "0x01" }, value: 1n }],
          alreadyDebited: [],
        }),
      );
      expect(commitments.running(payer)).toBe(0);
    },
  ],
  [
    "the dues",
    1,
    async (ledger) => {
      await chargeChannel(ledger, chargeOf(7));
      expect(await findDues(ledger, { network, limit: 100 })).toHaveLength(1);
      expect(await dropDue(ledger, { ...keyOf(7), claimed: 1n })).toBe(true);
    },
  ],
];

/** Each statement of a start and of a block, with the number of channels that it is about. */
const blocks: typeof works = [
  [
    "a round of the watcher",
    2,
    async (ledger) => {
      await chargeChannel(ledger, chargeOf(7));
      await readWatch(ledger, { network, contract });
      const ids = [keyOf(7).channelId, keyOf(idle + 7).channelId];
      expect(await findKnown(ledger, { network, contract, ids })).toHaveLength(1);
      const block = { number: 9, hash: keyOf(9).channelId };
      const head = { ...reading, block, balance: reading.balance + 1n };
      await mirrorChannel(ledger, {
        ...keyOf(7),
        head,
        served: head,
        final: undefined,
        maxLead: 10,
      });
      expect(await findMoving(ledger, { network, contract })).toHaveLength(1);
    },
  ],
  [
    "a round of the planner",
    1,
    async (ledger) => {
      await chargeChannel(ledger, chargeOf(7));
      expect(await findClaimable(ledger, { network, contract, limit: 500 })).toHaveLength(1);
      expect(await findSentClaims(ledger, network)).toEqual([]);
      await findLastSettle(ledger, { network, contract, receiver: contract, token: contract });
    },
  ],
  [
    "the receivers of claims",
    1,
    async (ledger) => {
      const receivers = await findReceivers(ledger, { network, contract });
      expect(receivers).toEqual([{ receiver: contract, token: contract }]);
    },
  ],
  [
    "deposits that are forgotten",
    1,
    async (ledger) => {
      await ledger.write((transaction) =>
        transaction
          .updateTable("channel_deposits")
          .set({ ended_at: 1 })
          .where("network", "=", network)
          .where("token", "=", contract)
          .where("payer", "=", numberToHex(7, { size: 20 }))
          .execute(),
      );
      await forgetDeposits(ledger, { network, before: 2 });
    },
  ],
];

/** Each list of the operator, with the number of channels that it is about. */
const lists: typeof works = [
  [
    "a page of all channels, and of those with unclaimed money",
    100,
    async (ledger) => {
      await chargeChannel(ledger, chargeOf(7));
      const options = { network, after: keyOf(50_000), limit: 50 } as const;
      expect(await findChannels(ledger, { ...options, selection: "all" })).toHaveLength(50);
      const due = { limit: 50 } as const;
      expect(await findChannels(ledger, { ...due, selection: "unclaimed" })).toHaveLength(1);
      expect(await findChannels(ledger, { ...due, selection: "withdrawing" })).toEqual([]);
      expect(await findChannels(ledger, { ...options, selection: "lost" })).toEqual([]);
    },
  ],
  [
    "a channel with its history, by the beginning of its id",
    1,
    async (ledger) => {
      const { channelId } = keyOf(65_535);
      expect(await findByPrefix(ledger, channelId.slice(0, 66))).toHaveLength(1);
      const payer = numberToHex(7, { size: 20 });
      const steps = { ...keyOf(7), config: { ...config, payer }, limit: 50 };
      expect(await findSteps(ledger, steps)).toHaveLength(2);
      await findChargedDays(ledger, { ...keyOf(7), limit: 90 });
    },
  ],
];

/** Entries of the dues that an undone work has left behind, each of them seen more than once. */
const deadRows = 1_000;

async function fill(ledger: LedgerContext): Promise<void> {
  const { dialect, db } = ledger;
  const numbers =
    dialect.engine === "postgres"
      ? sql`(select lpad(to_hex(n), 64, '0') as digits from generate_series(1, ${idle}) as n)`
      : sql`(with recursive series (n) as (select 1 union all select n + 1 from series where n < ${idle})
          select printf('%064x', n) as digits from series)`;
  const secure = dialect.amount.encode(100n);
  const none = dialect.amount.encode(0n);
  if (dialect.engine === "postgres") {
    await sql`alter table channels set (autovacuum_enabled = false)`.execute(db);
  }
  await ledger.write((transaction) =>
    sql`
      insert into channels (network, contract, channel_id, charged, secure, lost, refunding)
      select ${network}, ${contract}, '0x' || digits, ${none}, ${secure}, ${none}, 0
      from ${numbers} as numbers
    `.execute(transaction),
  );
  // Each was bought from once, and has its terms, its state, an ended claim and an ended deposit.
  await ledger.write(async (transaction) => {
    await sql`
      insert into channel_terms (network, contract, channel_id, payer, payer_authorizer, receiver,
        receiver_authorizer, token, withdraw_delay, salt, created_at)
      select ${network}, ${contract}, '0x' || digits, ${contract}, ${contract}, ${contract},
        ${contract}, ${contract}, 900, ${config.salt}, 1 from ${numbers} as numbers
    `.execute(transaction);
    await sql`
      insert into channel_states (network, contract, channel_id, balance, claimed, refund_nonce,
        block_number, block_hash, is_moving)
      select ${network}, ${contract}, '0x' || digits, ${secure}, ${none}, ${none}, 1, '0x01', 0
      from ${numbers} as numbers
    `.execute(transaction);
    await sql`
      insert into channel_claims (network, contract, channel_id, transaction_id, total_claimed,
        ceiling, signature, state, created_at)
      select ${network}, ${contract}, '0x' || digits, 'one', ${secure}, ${secure}, '0x01', 'done', 1
      from ${numbers} as numbers
    `.execute(transaction);
    await sql`
      insert into channel_deposits (network, token, payer, nonce, contract, channel_id, signer,
        amount, valid_before, has_code, since_number, state, attempts, created_at, ended_at)
      select ${network}, ${contract}, '0x' || substr(digits, 25), '0x' || digits, ${contract},
        '0x' || digits, ${contract}, ${secure}, ${secure}, 0, 1, 'done', 1, 1, 2
      from ${numbers} as numbers
    `.execute(transaction);
  });
}

describe("a hundred thousand idle channels, on postgres without statistics", () => {
  const { join } = ledgerForEachTest("postgres");

  async function readSoFar(transaction: Transaction<LedgerSchema>): Promise<number> {
    const { rows } = await sql<{ read: string }>`
      select sum(seq_tup_read + idx_tup_fetch + (
        select sum(pg_stat_get_xact_tuples_returned(indexrelid)) from pg_index where indrelid = relid
      )) as read from pg_stat_xact_user_tables where relname like 'channel%'
    `.execute(transaction);
    return Number(rows[0]?.read);
  }

  it("are read by no statement of a request, of the planner or of a list", async () => {
    const ledger = await join("one");
    await fill(ledger);
    const undone = new Error("undone");
    const read: string[] = [];
    for (const [name, channels, work] of [...works, ...blocks, ...lists]) {
      const attempt = ledger.write(async (transaction) => {
        await sql`set local max_parallel_workers = 0`.execute(transaction);
        const before = await readSoFar(transaction);
        await work({ ...ledger, db: transaction, write: (run) => run(transaction) });
        const count = (await readSoFar(transaction)) - before;
        read.push(count > 24 * channels + deadRows ? `${name} reads ${count}` : name);
        throw undone;
      });
      await attempt.catch((error: unknown) => {
        if (error !== undone) throw error;
      });
    }
    expect(read).toEqual([...works, ...blocks, ...lists].map(([name]) => name));
  });
});

describe("a hundred thousand idle channels, on sqlite", () => {
  const { join } = ledgerForEachTest("sqlite");

  it("are scanned by no statement of a request, of the planner or of a list", async () => {
    const ledger = await join("one");
    await fill(ledger);
    const queries: CompiledQuery[] = [];
    const record: KyselyPlugin = {
      transformQuery({ node, queryId }) {
        queries.push(ledger.db.getExecutor().compileQuery(node, queryId));
        return node;
      },
      transformResult: async ({ result }) => result,
    };
    const undone = new Error("undone");
    for (const [, , work] of [...works, ...blocks, ...lists]) {
      const attempt = ledger.write(async (transaction) => {
        const recorded = transaction.withPlugin(record);
        await work({ ...ledger, db: recorded, write: (run) => run(recorded) });
        throw undone;
      });
      await attempt.catch((error: unknown) => {
        if (error !== undone) throw error;
      });
    }
    const plans: string[] = [];
    for (const { sql: text, parameters } of queries) {
      if (!/^\s*(with|select|update|delete)/.test(text)) continue;
      const explain = CompiledQuery.raw(`explain query plan ${text}`, [...parameters]);
      const { rows } = await ledger.db.executeQuery<{ detail: string }>(explain);
      plans.push(...rows.map(({ detail }) => detail));
    }
    expect(plans.length).toBeGreaterThan(works.length);
    expect(
      plans.filter((step) => /^SCAN (held|channels|channel_(?!dues)\w+)\b/.test(step)),
    ).toEqual([]);
  });
});
