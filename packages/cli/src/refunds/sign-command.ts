import { signRefunds, type UnsignedRefunds, unsignedRefundsSchema } from "@coinslot/facilitator";
import { findKnownChain, isSameAddress } from "@coinslot/protocol";
import { Command } from "commander";
import { UsageError } from "../exit-code.ts";
import type { Io } from "../io.ts";
import { printableWhole } from "../pay/printable.ts";
import { readAccount } from "../read-secret.ts";
import { formatTable, type Terminal } from "../terminal.ts";
import { readRefundFile, writeRefundFile } from "./refund-files.ts";
import { formatAmount } from "./refund-text.ts";

/** An export asks for 30 days at most. */
const maxValidMs = 31n * 86_400_000n;

type UnsignedRefund = UnsignedRefunds["refunds"][number];

/** `coinslot refunds sign`: shows exported refunds, asks, and signs them. Uses no network. */
export function signCommand(terminal: Terminal, io: Io): Command {
  return new Command("sign")
    .description("sign exported refunds, on a machine that needs the key and no network")
    .argument("<file>", "as refunds export wrote it")
    .option("--output <file>", "a new file; default: the file's name with .signed.json")
    .option("--yes", "sign without a prompt")
    .addHelpText(
      "after",
      `
The float account comes from FLOAT_SEED_PHRASE or FLOAT_PRIVATE_KEY. Each refund is shown with its
amount, token, chain and recipient, and their sums. Look at them: the file came from elsewhere.

Example:
  coinslot refunds sign refunds.json`,
    )
    .action(async (name: string, options: { output?: string; yes?: true }): Promise<void> => {
      const kind = "unsigned refunds, as coinslot refunds export writes it";
      const unsigned = readRefundFile(unsignedRefundsSchema, { name, folder: io.folder, kind });
      const { output = `${name.replace(/\.json$/, "")}.signed.json`, yes } = options;
      check(unsigned, io.now());
      const account = readAccount(terminal.env, "FLOAT");
      if (account?.sign === undefined) {
        throw new UsageError(
          "Set FLOAT_SEED_PHRASE or FLOAT_PRIVATE_KEY, or name a file with …_FILE.",
        );
      }
      if (!isSameAddress(account.address, unsigned.float)) {
        throw new UsageError(
          `The refunds are to be signed by ${unsigned.float}, and the key is of ${account.address}.`,
        );
      }
      show(terminal, unsigned);
      if (!yes) await ask(terminal, unsigned.refunds.length);
      const { address, sign } = account;
      await writeRefundFile(output, io.folder, await signRefunds(unsigned, { address, sign }));
      terminal.out(`${unsigned.refunds.length} signed, in ${output}`);
      terminal.err("Bring the file back: coinslot refunds submit");
    });
}

function check({ refunds }: UnsignedRefunds, now: number): void {
  if (refunds.length === 0) throw new UsageError("The file has no refunds.");
  const names = refunds.map(nameOf);
  const repeated = names.find((each, index) => names.indexOf(each) !== index);
  if (repeated !== undefined) throw new UsageError("The file names a refund twice.");
  const ends = refunds.map(({ validBefore }) => BigInt(validBefore) * 1000n - BigInt(now));
  if (ends.some((left) => left <= 0n)) {
    throw new UsageError("The time for these refunds is over: export them again.");
  }
  if (ends.some((left) => left > maxValidMs)) {
    throw new UsageError("The file asks for signatures that hold for more than 31 days.");
  }
}

/** The n-th refund of a payment has one nonce. */
function nameOf({ network, asset, payment, n }: UnsignedRefund): string {
  const { authority = asset, payer, nonce } = payment;
  return `${network} ${authority} ${payer} ${nonce} ${n}`.toLowerCase();
}

function show(terminal: Terminal, { float, refunds }: UnsignedRefunds): void {
  const rows = refunds.map((refund) => [
    formatAmount(refund, BigInt(refund.amount)),
    chainOf(refund),
    refund.payment.payer,
    new Date(Number(refund.validBefore) * 1000).toISOString().slice(0, 16).replace("T", " "),
    printableWhole(refund.reason ?? ""),
  ]);
  terminal.err(`From ${float}:`);
  terminal.err(
    formatTable(terminal, [["amount", "chain", "to", "until (UTC)", "reason"], ...rows]),
  );
  const tokens = new Set(refunds.map(tokenOf));
  for (const token of tokens) {
    const group = refunds.filter((each) => tokenOf(each) === token);
    const [first] = group;
    if (first === undefined) continue;
    const sum = group.reduce((total, { amount }) => total + BigInt(amount), 0n);
    terminal.err(`In total ${formatAmount(first, sum)} on ${chainOf(first)}.`);
  }
}

function tokenOf({ network, asset }: UnsignedRefund): string {
  return `${network}/${asset.toLowerCase()}`;
}

function chainOf({ network }: UnsignedRefund): string {
  const name = findKnownChain(network)?.name;
  return name === undefined ? network : `${name} (${network})`;
}

async function ask(terminal: Terminal, count: number): Promise<void> {
  if (terminal.confirm === undefined) {
    throw new UsageError("No terminal to prompt: add --yes to sign without a prompt.");
  }
  const question = count === 1 ? "Sign it?" : `Sign these ${count}?`;
  if (!(await terminal.confirm(question))) throw new UsageError("Nothing was signed.");
}
