// Writes what a release leaves in its ledger, as a fixture for every later one:
//   node --import tsx --conditions=source packages/facilitator/scripts/write-ledger-fixture.ts NAME
// Run it at the last commit of a schema, before the next migration is added.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { dumpDatabase, startDevnet, startPostgres } from "@coinslot/devnet";
import { type Reservation, type SealedAnswer, toLowerHex } from "@coinslot/protocol";
import { openDatabase } from "@coinslot/storage";
import { type CoinslotFacilitator, createFacilitator } from "../src/create-facilitator.ts";
import { createLedger } from "../src/ledger/create-ledger.ts";
import { retentionSteps } from "../src/ledger/maintenance/retention-steps.ts";
import { sumPayments } from "../src/ledger/maintenance/sum-payments.ts";
import type { LedgerSchema } from "../src/ledger/schema.ts";
import { ledgerLater } from "../src/testing/ledger-later.ts";
import { type SignedTestPayment, signPayment, type TestPayment } from "../src/testing/payments.ts";

const [name] = process.argv.slice(2);
if (name === undefined) {
  console.error("Missing argument: the fixture's name, as in 01-first-release.");
  process.exit(2);
}
const day = 86_400_000;
const folder = join(import.meta.dirname, "../src/ledger/migrations/fixtures");
const directory = await mkdtemp(join(tmpdir(), "coinslot-fixture-"));
const postgres = await startPostgres();
try {
  for (const engine of ["sqlite", "postgres"] as const) {
    const url = engine === "sqlite" ? `sqlite:${join(directory, "ledger.db")}` : postgres.url;
    await writeFile(join(folder, `${name}.${engine}.sql`), await fillLedger(url));
  }
} finally {
  await postgres.stop();
  await rm(directory, { recursive: true });
}

/**
 * The dump of a ledger whose process runs: payments in every state that a killed one leaves behind,
 * and an archived one.
 */
async function fillLedger(url: string): Promise<string> {
  const devnet = await startDevnet();
  const { buyer, deployer, relayer, seller } = devnet.accounts;
  await devnet.mint({ to: buyer.address, amount: 1_000_000_000n });
  const facilitator = createFacilitator({
    networks: [
      {
        network: devnet.network,
        rpcUrls: [devnet.rpcUrl],
        relayer: { privateKey: relayer.privateKey },
        finalAfter: 2,
      },
    ],
    ledger: url,
    settleTimeoutSeconds: 2,
  });
  try {
    await facilitator.ready();
    const pay = (payment: Partial<TestPayment> = {}) =>
      signPayment({
        network: devnet.network,
        asset: devnet.token,
        signer: buyer,
        payTo: seller.address,
        ...payment,
      });

    await deliver(facilitator, await pay());
    await devnet.mine(4);
    await waitUntil(() => areFinal(facilitator, 1));
    await archiveAll(url);
    await deliver(facilitator, await pay());
    const keyHash = "key of a buyer";
    await settle(facilitator, await reserve(facilitator, await pay(), keyHash), {
      keyHash,
      sealed: new Uint8Array([1, 2, 3]),
    });
    await devnet.mine(4);
    await waitUntil(() => areFinal(facilitator, 3));
    await settle(facilitator, await reserve(facilitator, await pay()));
    const released = await reserve(facilitator, await pay());
    await facilitator.release(released.reservation, "handler_failed");
    await reserve(facilitator, await pay());
    // Without money: the trial before signing refuses it.
    await settle(facilitator, await reserve(facilitator, await pay({ signer: deployer })));
    await devnet.setAutomine(false);
    await settle(facilitator, await reserve(facilitator, await pay()));
    return await dumpDatabase(url);
  } finally {
    await facilitator.close();
    await devnet.stop();
  }
}

/** Archives what a year of days makes of the ledger so far, and sums it. */
async function archiveAll(url: string): Promise<void> {
  const database = await openDatabase<LedgerSchema>({ url });
  try {
    const ledger = createLedger({
      database,
      processId: "archivist",
      now: Date.now,
      heartbeatLeaseMs: 10_000,
      keepAnswersMs: 60_000,
      releaseLimit: { count: 20, windowMs: 60_000 },
    });
    const times = { keepPaymentsMs: undefined, keepUndeliveredMs: undefined };
    const later = ledgerLater(ledger, 366 * day);
    const steps = retentionSteps(later, { ...times, keepSignaturesMs: 30 * day });
    for (const step of steps) while ((await step()) === "again");
    while (await sumPayments(ledger));
  } finally {
    await database.close();
  }
}

async function areFinal(facilitator: CoinslotFacilitator, count: number): Promise<boolean> {
  const { payments } = await facilitator.payments.list({});
  return payments.length === count && payments.every(({ finalAt }) => finalAt !== undefined);
}

interface Reserved extends SignedTestPayment {
  reservation: Reservation;
}

async function reserve(
  facilitator: CoinslotFacilitator,
  payment: SignedTestPayment,
  keyHash?: string,
): Promise<Reserved> {
  const { authorization, paymentRequirements } = payment;
  const { from, to, nonce, value, validBefore } = authorization;
  const { network, asset } = paymentRequirements;
  const reserved = await facilitator.reserve({
    id: { network, asset: toLowerHex(asset), payer: toLowerHex(from), nonce },
    fingerprint: `GET /weather ${nonce}`,
    keyHash,
    value,
    validBefore,
    payTo: toLowerHex(to),
  });
  if (reserved.state !== "reserved") throw new Error(`The payment is ${reserved.state}.`);
  return { ...payment, reservation: reserved.reservation };
}

/** Settles a payment, and marks its answer as sent. */
async function deliver(
  facilitator: CoinslotFacilitator,
  payment: SignedTestPayment,
): Promise<void> {
  const delivered = await reserve(facilitator, payment);
  await settle(facilitator, delivered);
  await facilitator.deliver(delivered.reservation);
}

async function settle(
  facilitator: CoinslotFacilitator,
  { paymentPayload, paymentRequirements, reservation }: Reserved,
  answer?: SealedAnswer,
): Promise<void> {
  await facilitator.settle(paymentPayload, paymentRequirements, { reservation, answer });
}

async function waitUntil(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(50);
}
