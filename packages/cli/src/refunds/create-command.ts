import { randomUUID } from "node:crypto";
import {
  createRefundOperation,
  getPaymentOperation,
  listRefundsOperation,
  OperationRefusedError,
  type OperatorPlace,
  runOperation,
} from "@coinslot/facilitator";
import { findKnownToken, parseMoney } from "@coinslot/protocol";
import { Command, InvalidArgumentError } from "commander";
import { UnclearError, UsageError } from "../exit-code.ts";
import type { Io } from "../io.ts";
import { ledgerOption } from "../ledger-url.ts";
import { readOperatorPlace } from "../operator-place.ts";
import { formatFacts, type Terminal } from "../terminal.ts";
import { formatAmount } from "./refund-text.ts";
import { printRefund } from "./show-command.ts";

interface CreateOptions {
  amount?: string;
  units?: string;
  reason?: string;
  key?: string;
  yes?: true;
  json?: true;
  ledger?: string;
}

type RefundedPayment = Awaited<ReturnType<typeof readPayment>>;

/** `coinslot refunds create`: shows the payment, asks, and begins its refund. */
export function createCommand(terminal: Terminal, io: Io): Command {
  return new Command("create")
    .description("give a payment back, or a part of it")
    .argument("<payment>", "id of the payment, as payments list shows it")
    .option("--amount <amount>", "in whole tokens; default: all that is left of the payment")
    .option("--units <number>", "the same in the token's smallest unit", readUnits)
    .option("--reason <words>", "for the records")
    .option("--key <key>", "idempotency key: one refund, however often it is repeated")
    .option("--yes", "do not prompt")
    .addOption(ledgerOption())
    .option("--json", "print JSON, values in the smallest unit")
    .addHelpText(
      "after",
      `
The refund goes to the address that paid, from the float account of the seller, once the payment is
final. From now on the payment serves no request. Without the float's key, the refund waits for a
signature: coinslot refunds export.

Examples:
  coinslot refunds create 019aa2b5c1d0a1b2c3d4e5f6a7b8c9d0
  coinslot refunds create 019aa2b5c1d0a1b2c3d4e5f6a7b8c9d0 --amount 0.0005 --reason "half of it" --yes`,
    )
    .action(async (id: string, options: CreateOptions): Promise<void> => {
      const place = readOperatorPlace(terminal, io, options.ledger);
      const payment = await readPayment(place, id);
      const amount = readAmount(payment, options);
      await confirm(terminal, { payment, amount, options });
      // From here on, a signal does not end it unreported.
      terminal.signal.throwIfAborted();
      const { reason, key = randomUUID() } = options;
      const request = { payment: id, amount: amount?.toString(), reason, idempotencyKey: key };
      const refund = await create(place, request);
      printRefund(terminal, refund, options);
    });
}

async function readPayment(place: OperatorPlace, id: string) {
  const payment = await runOperation(place, getPaymentOperation, { id });
  const earlier = await runOperation(place, listRefundsOperation, { payment: id, limit: 1000 });
  const refunded = earlier.refunds
    .filter(({ state }) => state !== "void")
    .reduce((sum, { amount }) => sum + amount, 0n);
  return { ...payment, refunded };
}

function readAmount(payment: RefundedPayment, options: CreateOptions): bigint | undefined {
  const { amount, units } = options;
  if (amount !== undefined && units !== undefined) {
    throw new UsageError("Give --amount or --units, not both.");
  }
  if (units !== undefined) return BigInt(units);
  if (amount === undefined) return undefined;
  const known = findKnownToken(payment.network, payment.asset);
  if (known === undefined) {
    throw new UsageError(
      `The decimals of ${payment.asset} are not known here: give --units instead of --amount.`,
    );
  }
  const value = parseMoney(amount, known.decimals);
  if (value !== undefined && value > 0n) return value;
  throw new UsageError(`--amount must be above zero, with at most ${known.decimals} decimals.`);
}

async function confirm(
  terminal: Terminal,
  shown: { payment: RefundedPayment; amount: bigint | undefined; options: CreateOptions },
): Promise<void> {
  const { payment, amount, options } = shown;
  const left = payment.value - payment.refunded;
  terminal.err(
    formatFacts(terminal, {
      payment: `${formatAmount(payment, payment.value)} on ${payment.network}, ${payment.state}`,
      ...(payment.refunded > 0n
        ? { "given back": formatAmount(payment, payment.refunded) }
        : undefined),
      refund: formatAmount(payment, amount ?? (left > 0n ? left : 0n)),
      to: payment.payer,
    }),
  );
  if (options.yes) return;
  if (terminal.confirm === undefined) {
    throw new UsageError("No terminal to prompt: add --yes to refund without a prompt.");
  }
  if (!(await terminal.confirm("Give it back?"))) throw new UsageError("Nothing was refunded.");
}

/** Where no answer has come, the refund may have begun. Its key makes a repetition harmless. */
async function create(
  place: OperatorPlace,
  request: Parameters<
    typeof runOperation<typeof createRefundOperation.argument, typeof createRefundOperation.result>
  >[2],
) {
  try {
    return await runOperation(place, createRefundOperation, request);
  } catch (cause) {
    if (cause instanceof OperationRefusedError) throw cause;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new UnclearError(
      `${why} The refund may have begun. Repeat the command with --key ${request.idempotencyKey}: then it is made once.`,
      { cause },
    );
  }
}

function readUnits(text: string): string {
  if (/^[1-9][0-9]{0,77}$/.test(text)) return text;
  throw new InvalidArgumentError("expected a whole number above zero");
}
