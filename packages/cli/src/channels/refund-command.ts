import { randomUUID } from "node:crypto";
import {
  type ChannelRecord,
  getChannelOperation,
  OperationRefusedError,
  type OperatorPlace,
  operatorAt,
  refundChannelOperation,
} from "@coinslot/facilitator";
import {
  addressSchema,
  findKnownToken,
  formatMoney,
  isNetwork,
  parseMoney,
} from "@coinslot/protocol";
import { Command } from "commander";
import { UnclearError, UsageError } from "../exit-code.ts";
import type { Io } from "../io.ts";
import { ledgerOption } from "../ledger-url.ts";
import { readOperatorPlace } from "../operator-place.ts";
import { safeText } from "../reads/run-read.ts";
import { formatFacts, formatJson, type Terminal } from "../terminal.ts";
import { text } from "./seller-channels.ts";

interface RefundOptions {
  amount?: string;
  key?: string;
  dryRun?: true;
  yes?: true;
  json?: true;
  ledger?: string;
}

/** `coinslot channels refund`: a running seller gives back what was not charged. */
export function refundCommand(terminal: Terminal, io: Io): Command {
  return new Command("refund")
    .description("of a seller: give a payer back what was not charged on a channel")
    .argument("<id>", "its id, or the beginning of it")
    .option("--amount <amount>", "in whole tokens; default: all that was not charged")
    .option("--key <key>", "idempotency key: one refund, however often it is repeated")
    .option("--dry-run", "print what it would do, and do nothing")
    .option("--yes", "do not prompt")
    .addOption(ledgerOption())
    .option("--json", "print JSON, as the operation returns it")
    .addHelpText(
      "after",
      `
The running seller claims what is unclaimed and gives back the rest in one transaction, at its own gas.
The money goes to the channel's payer, never elsewhere. Until the refund is final, the channel sells nothing.

Examples:
  coinslot channels refund 0x72e955e869 --dry-run
  coinslot channels refund 0x72e955e869 --amount 0.5 --yes`,
    )
    .action(async (id: string, options: RefundOptions): Promise<void> => {
      const place = readOperatorPlace(terminal, io, options.ledger);
      const found = await operatorAt(place).run(getChannelOperation, { id: id.toLowerCase() });
      const { channel } = found;
      const amount = readAmount(channel, options.amount);
      terminal.err(formatFacts(terminal, factsOf(channel, amount)));
      if (options.dryRun) return;
      if (!options.yes) await ask(terminal);
      // From here on, a signal does not end it unreported.
      terminal.signal.throwIfAborted();
      const refund = await begin(place, { channel, amount, key: options.key ?? randomUUID() });
      if (options.json) return terminal.out(formatJson(refund));
      terminal.out(describe(channel, refund));
    });
}

/** Charged money stays: what is locked, without what is unclaimed. */
function leftOf({ locked, unclaimed }: ChannelRecord): bigint {
  const left = BigInt(locked.value) - BigInt(unclaimed.value);
  return left > 0n ? left : 0n;
}

function readAmount(channel: ChannelRecord, amount: string | undefined): bigint | undefined {
  if (amount === undefined) return undefined;
  const known = tokenOf(channel);
  const value = known && parseMoney(amount, known.decimals);
  if (value !== undefined && value > 0n) return value;
  throw new UsageError("--amount must be above zero, in whole units of a known token.");
}

function tokenOf({ network, locked }: ChannelRecord) {
  const asset = addressSchema.safeParse(locked.asset).data;
  return asset && isNetwork(network) ? findKnownToken(network, asset) : undefined;
}

function factsOf(channel: ChannelRecord, amount: bigint | undefined): Record<string, string> {
  const left = leftOf(channel);
  const given = amount === undefined || amount > left ? left : amount;
  return {
    channel: `${channel.id} on ${channel.network}, ${channel.state}`,
    claim: `${text(channel.unclaimed)} that was charged, in the same transaction`,
    refund: moneyOf(channel, given),
    to: channel.payer,
  };
}

function moneyOf(channel: ChannelRecord, value: bigint): string {
  const known = tokenOf(channel);
  const amount = known ? formatMoney(value, known.decimals) : null;
  return text({ ...channel.locked, value: `${value}`, amount });
}

async function ask(terminal: Terminal): Promise<void> {
  if (terminal.confirm === undefined) {
    throw new UsageError("No terminal to prompt: add --yes to refund without a prompt.");
  }
  if (!(await terminal.confirm("Give it back?"))) throw new UsageError("Nothing was refunded.");
}

/** Where no answer has come, the refund may have begun. Its key makes a repetition harmless. */
async function begin(
  place: OperatorPlace,
  { channel, amount, key }: { channel: ChannelRecord; amount: bigint | undefined; key: string },
) {
  const { network, id } = channel;
  try {
    return await operatorAt(place).run(refundChannelOperation, {
      network,
      channel: `0x${id.slice(2)}`,
      amount: amount?.toString(),
      idempotencyKey: key,
    });
  } catch (cause) {
    if (cause instanceof OperationRefusedError) throw cause;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new UnclearError(
      `${why} The refund may have begun. Repeat the command with --key ${key}: then it is made once.`,
      { cause },
    );
  }
}

function describe(
  channel: ChannelRecord,
  { state, amount, transaction, reason }: typeof refundChannelOperation.result._output,
): string {
  const money =
    amount === null ? "The refund" : `The refund of ${moneyOf(channel, BigInt(amount))}`;
  if (state === "failed") return `${money} has failed: ${safeText(reason)}`;
  if (transaction !== null) return `${money} is in ${safeText(transaction)}.`;
  return `${money} is on its way. coinslot channels show ${channel.id.slice(0, 12)} has its end.`;
}
