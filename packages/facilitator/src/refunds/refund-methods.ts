import { type Hex, isWellFormedAddress, toLowerHex } from "@coinslot/protocol";
import { isAddressEqual, recoverAddress } from "viem";
import { createRefund } from "../ledger/refunds/create-refund.ts";
import { getRefund } from "../ledger/refunds/list-refunds.ts";
import { moveRefund } from "../ledger/refunds/move-refund.ts";
import type { Refund } from "../ledger/refunds/refund.ts";
import { RefundError } from "../ledger/refunds/refund-error.ts";
import {
  findRefundedPayment,
  latestEnd,
  type RefundRow,
  toRefund,
} from "../ledger/refunds/refund-row.ts";
import { accountsOf } from "./advance-refund.ts";
import { isFreeOf } from "./is-free-of.ts";
import { isPaymentOnChain } from "./is-payment-on-chain.ts";
import { cancelRefund, takeOperatorsTransaction } from "./paid-by-operator.ts";
import { readRefund } from "./read-chain.ts";
import type { ExportRefunds, ImportedRefunds, Refunds } from "./refund.ts";
import { type SignedRefunds, signedRefundsSchema, type UnsignedRefunds } from "./refund-file.ts";
import { giveToEngine, unsignedForm } from "./sign-refund.ts";
import { transferOf } from "./sign-refunds.ts";
import type { RefundsWorker } from "./start-refunds.ts";
import { tokenDomain } from "./token-domain.ts";

/** The methods of refunds that write, in the process of a worker. */
export function refundMethods(worker: RefundsWorker): Omit<Refunds, "list" | "get"> {
  const { ledger } = worker.refunds.context;
  return {
    async create(request) {
      const refund = await createRefund(ledger, request);
      worker.wake();
      return refund;
    },
    async approve(id) {
      const row = await requireRow(worker, id);
      if (!["review", "blocked", "manual"].includes(row.state)) {
        throw new RefundError("wrong_state", `The refund is ${row.state}, and waits for no word`);
      }
      const now = ledger.now();
      const change = { state: "scheduled", cause: null, approved_at: now, next_at: now } as const;
      if (!(await moveRefund(ledger, row, change))) {
        throw new RefundError("wrong_state", "The refund has changed meanwhile");
      }
      worker.wake();
      return read(worker, id);
    },
    async markPaid({ id, transactionHash }) {
      const row = await requireRow(worker, id);
      await takeOperatorsTransaction(worker.refunds, { row, hash: transactionHash });
      worker.wake();
      return read(worker, id);
    },
    async cancel(id) {
      return cancelRefund(worker.refunds, await requireRow(worker, id));
    },
    exportUnsigned: (request = {}) => exportUnsigned(worker, request),
    importSigned: (signed) => importSigned(worker, signed),
  };
}

const maxExported = 1_000;
const daySeconds = 86_400;
/** A signature that is valid for less may not be executed in time. */
const minValidSeconds = 60;
/**
 * An export asks for 30 days at most. A refund waits for the end of a form before another is made.
 */
const maxValidDays = 31;

async function exportUnsigned(
  { refunds }: RefundsWorker,
  { float, ids, validForSeconds = daySeconds }: ExportRefunds,
): Promise<UnsignedRefunds> {
  const { ledger, now } = refunds.context;
  const account = float ?? refunds.settings.float;
  if (account === undefined || !isWellFormedAddress(account)) {
    throw new RefundError("invalid_request", "float must be the address that will sign");
  }
  if (!(validForSeconds >= 600 && validForSeconds <= 30 * daySeconds)) {
    throw new RefundError("invalid_request", "validForSeconds must be from 600 to 2592000");
  }
  const signer = toLowerHex(account);
  let query = ledger.db
    .selectFrom("refunds")
    .selectAll()
    .where("state", "=", "unsigned")
    .orderBy("id")
    .limit(maxExported);
  if (ids !== undefined) query = query.where("id", "in", ledger.dialect.among(ids));
  const rows = await query.execute();
  const validBefore = BigInt(Math.floor(now() / 1000) + Math.floor(validForSeconds));
  const exported: UnsignedRefunds["refunds"] = [];
  for (const row of rows) {
    const { float: held } = row;
    if (held !== null && held !== signer && !(await isFreeOf(refunds, { row, accounts: [held] }))) {
      if (ids === undefined) continue;
      throw new RefundError(
        "wrong_state",
        `Refund ${row.id} is to be signed by ${held}, until its time is over and no endpoint shows it as executed`,
      );
    }
    const domain = tokenDomain(row, await refunds.readFacts(row));
    const form = domain && (await unsignedForm(refunds, { row, domain, validBefore }));
    if (form === undefined) continue;
    // Before the file leaves: no other account signs it from now on.
    const isHeld = await moveRefund(ledger, row, {
      state: "unsigned",
      float: signer,
      valid_before: latestEnd(row, validBefore, ledger.dialect),
    });
    if (isHeld) exported.push(form);
  }
  return { format: "coinslot-refunds/1", float: signer, refunds: exported };
}

async function importSigned(worker: RefundsWorker, file: SignedRefunds): Promise<ImportedRefunds> {
  const parsed = signedRefundsSchema.safeParse(file);
  if (!parsed.success) throw new RefundError("invalid_request", "The file has another format");
  const imported: ImportedRefunds = { sent: [], refused: [] };
  for (const signed of parsed.data.refunds) {
    try {
      imported.sent.push(await importOne(worker, toLowerHex(parsed.data.float), signed));
    } catch (error) {
      if (!(error instanceof RefundError)) throw error;
      imported.refused.push({ id: signed.id, message: error.message });
    }
  }
  return imported;
}

async function importOne(
  worker: RefundsWorker,
  float: Hex,
  signed: SignedRefunds["refunds"][number],
): Promise<Refund> {
  const { refunds } = worker;
  const { ledger } = refunds.context;
  const row = await requireRow(worker, signed.id);
  const settlement = refunds.settlements.get(row.network);
  if (row.operation_id !== null && row.float === float) return toRefund(row, ledger.dialect);
  if (row.state !== "unsigned" && row.state !== "waiting") {
    throw new RefundError("wrong_state", `The refund is ${row.state}, and waits for no signature`);
  }
  if (row.float !== float || settlement === undefined) {
    throw new RefundError("wrong_signature", "The refund was exported for another account");
  }
  const domain = tokenDomain(row, await refunds.readFacts(row));
  const validBefore = BigInt(signed.validBefore);
  const form = domain && (await unsignedForm(refunds, { row, domain, validBefore }));
  const digest = form && transferOf(float, form).digest;
  const { signature } = signed;
  const signer =
    digest && (await recoverAddress({ hash: digest, signature }).catch(() => undefined));
  if (signer === undefined || !isAddressEqual(signer, float)) {
    throw new RefundError("wrong_signature", "The signature is not the float's for this refund");
  }
  const seconds = Math.floor(refunds.context.now() / 1000);
  if (validBefore < BigInt(seconds + minValidSeconds)) {
    throw new RefundError("wrong_signature", "The signature is over, or about to be: export again");
  }
  if (validBefore > BigInt(seconds + maxValidDays * daySeconds)) {
    throw new RefundError(
      "wrong_signature",
      `The signature holds for more than ${maxValidDays} days: export again`,
    );
  }
  const value = ledger.dialect.amount.decode(row.amount);
  const accounts = [...new Set([float, ...(await accountsOf(refunds, row))])];
  const reading = await readRefund(settlement.network, row, { accounts, float, value });
  if (reading.usedBy.length > 0 || reading.isUnreadable) {
    throw new RefundError("wrong_state", "The refund was executed before, or cannot be read now");
  }
  const others = accounts.filter((each) => each !== float);
  if (!(await isFreeOf(refunds, { row, accounts: others }))) {
    throw new RefundError(
      "wrong_state",
      "An endpoint shows the refund as executed by a former float: import it again later",
    );
  }
  const payment = await findRefundedPayment(ledger, row.payment_id);
  if (payment === undefined || !(await isPaymentOnChain(ledger, settlement, payment))) {
    throw new RefundError(
      "wrong_state",
      "An endpoint does not have the refund's payment in its block: import it again later",
    );
  }
  const change = await giveToEngine(refunds, {
    row,
    settlement,
    reading,
    value,
    float,
    validBefore,
    signature: toLowerHex(signature),
  });
  worker.wake();
  if (change === undefined) return read(worker, row.id);
  throw new RefundError(
    "wrong_state",
    change.cause === "float_balance" || change.cause === "daily_limit" || change.cause === "stopped"
      ? `The refund waits: ${change.cause}. Import it again later`
      : "The refund has changed meanwhile",
  );
}

async function requireRow({ refunds }: RefundsWorker, id: string): Promise<RefundRow> {
  const row = await refunds.context.ledger.db
    .selectFrom("refunds")
    .selectAll()
    .where("id", "=", id)
    .executeTakeFirst();
  if (row === undefined) throw new RefundError("unknown_refund", "The ledger has no such refund");
  return row;
}

async function read({ refunds }: RefundsWorker, id: string): Promise<Refund> {
  const refund = await getRefund(refunds.context.ledger, id);
  if (refund === undefined)
    throw new RefundError("unknown_refund", "The ledger has no such refund");
  return refund;
}
