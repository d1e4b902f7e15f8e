import { leasesMigration, type MigrateOptions, outboxMigration } from "@coinslot/storage";
import { archiveEndedPayments } from "./archive-ended-payments.ts";
import { bookChannels } from "./book-channels.ts";
import { boundDeposits } from "./bound-deposits.ts";
import { compareStates } from "./compare-states.ts";
import { countRuns } from "./count-runs.ts";
import { countVisits } from "./count-visits.ts";
import { createChannels } from "./create-channels.ts";
import { createCodePayers } from "./create-code-payers.ts";
import { createSecrets } from "./create-secrets.ts";
import { createStops } from "./create-stops.ts";
import { createTables } from "./create-tables.ts";
import { depositChannels } from "./deposit-channels.ts";
import { divideCallerGas } from "./divide-caller-gas.ts";
import { indexBlocks } from "./index-blocks.ts";
import { indexSearches } from "./index-searches.ts";
import { keepAudit } from "./keep-audit.ts";
import { bookPayments, keepBooks } from "./keep-books.ts";
import { keepCodeRecords } from "./keep-code-records.ts";
import { keepRefusals } from "./keep-refusals.ts";
import { keepVoucherBefore } from "./keep-voucher-before.ts";
import { mirrorChannels } from "./mirror-channels.ts";
import { nameRelayers } from "./name-relayers.ts";
import { publishVouchers } from "./publish-vouchers.ts";
import { recordGenesis } from "./record-genesis.ts";
import { recordLosses } from "./record-losses.ts";
import { recordRefunds } from "./record-refunds.ts";
import { recordWhatWasSold } from "./record-what-was-sold.ts";
import { refundChannels } from "./refund-channels.ts";
import { resumeCharges } from "./resume-charges.ts";
import { serveCallers } from "./serve-callers.ts";
import { sumCharges } from "./sum-charges.ts";
import { sumPayments } from "./sum-payments.ts";
import { tellOfChannels } from "./tell-of-channels.ts";
import { tellOfPayments } from "./tell-of-payments.ts";
import { vouchCodeGas } from "./vouch-code-gas.ts";

/**
 * The ledger's schema, step by step. `ledger-migrations.test.ts` pins each step's result.
 * Append-only, and expand-only: the previous release runs beside a step, so new columns have
 * defaults, and nothing is taken away.
 */
export const ledgerMigrations: MigrateOptions = {
  name: "facilitator",
  migrations: [
    leasesMigration,
    { title: "payments, their transactions and their answers", up: createTables },
    { title: "payers with code, and their gas budget", up: createCodePayers },
    { title: "runs of a payment's handler", up: countRuns },
    { title: "gas that a payer's record vouches for", up: vouchCodeGas },
    { title: "the authority of a nonce, and what was sold", up: recordWhatWasSold },
    { title: "records of payers with code", up: keepCodeRecords },
    { title: "sums of ended payments", up: sumPayments },
    { title: "the chain of each network", up: recordGenesis },
    { title: "payments that have ended, in a compact form", up: archiveEndedPayments },
    { title: "stop switches", up: createStops },
    { title: "blocks of what is not final, by their hashes", up: indexBlocks },
    { title: "relayers of each process", up: nameRelayers },
    { title: "secrets that processes share", up: createSecrets },
    { title: "refunds, and the payments that they give back", up: recordRefunds },
    outboxMigration,
    { title: "events of payments and refunds", up: tellOfPayments },
    { title: "books in double entry", up: keepBooks },
    { title: "payments in the books", up: bookPayments },
    { title: "visits that bought nothing", up: countVisits },
    { title: "archived payments and events, for searches", up: indexSearches },
    { title: "audit log", up: keepAudit },
    { title: "conditions of the sums without lists", up: compareStates },
    { title: "reorganisations deeper than final, and losses", up: recordLosses },
    { title: "payment channels", up: createChannels },
    { title: "charges that are resumed, and their kept answers", up: resumeCharges },
    { title: "channels on the chain", up: mirrorChannels },
    { title: "refunds of channels", up: refundChannels },
    { title: "channels in the books", up: bookChannels },
    { title: "events of channels", up: tellOfChannels },
    { title: "vouchers that claims have shown", up: publishVouchers },
    { title: "deposits into channels", up: depositChannels },
    { title: "the voucher before the last one of a channel", up: keepVoucherBefore },
    { title: "reasons of refused claims", up: keepRefusals },
    { title: "calls of the escrow that callers ask for", up: serveCallers },
    { title: "gas that callers' buyers cause", up: divideCallerGas },
    { title: "sums of charges", up: sumCharges },
    { title: "bounds of deposits, and indexes of channels", up: boundDeposits },
  ],
};
