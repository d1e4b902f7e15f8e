import type { BookFault } from "@coinslot/facilitator";
import { findKnownToken, formatMoney, type Network } from "@coinslot/protocol";
import { formatTable, type Terminal } from "../terminal.ts";
import type { ChainComparison } from "./check-chain.ts";

/** Result of a check. */
export interface CheckResult {
  /** Payments and entries read. */
  checked: number;
  /** Entries of forgotten payments, which are closed into sums. */
  summed: number;
  faults: BookFault[];
  chains: ChainComparison[];
  /** Networks of payments that no endpoint is configured for. */
  unconfigured: Network[];
  /** Last days of closed periods whose entries have changed since. */
  changed: string[];
  isUnfinished: boolean;
}

/** A transfer that is no difference. */
export const notOurs = "not ours";

/** A line of the result. */
export interface Row {
  about: string;
  network: string;
  subject: string;
  amount: string;
}

const faultWords: Record<BookFault["fault"], string> = {
  missing_entry: "no entry",
  extra_entry: "one entry too many",
  wrong_entry: "wrong entry",
  unknown_source: "entry of no payment",
  wrong_balance: "wrong balance of a channel",
};

/** The lines of a result: differences first, then what is not ours. */
export function describeCheck({ faults, chains, unconfigured, changed }: CheckResult): Row[] {
  return [
    ...faults.map(({ fault, sourceId, network, transaction }) => ({
      about: faultWords[fault],
      network,
      subject: [sourceId, transaction].filter((part) => part !== undefined).join(" "),
      amount: "",
    })),
    ...chains.flatMap(({ network, missing, unposted, foreign }) => [
      ...missing.map((each) => ({
        about: "no transfer",
        network,
        subject: `${each.sourceId} ${each.transaction}`,
        amount: amountOf(network, each),
      })),
      ...[
        { about: "not posted", transfers: unposted },
        { about: notOurs, transfers: foreign },
      ].flatMap(({ about, transfers }) =>
        transfers.map((each) => ({
          about,
          network,
          subject: `${each.transaction} from ${each.from}`,
          amount: amountOf(network, each),
        })),
      ),
    ]),
    ...changed.map((day) => ({
      about: "closed period changed",
      network: "",
      subject: `the period up to the end of ${day} has other sums than when it was closed`,
      amount: "",
    })),
    ...unconfigured.map((network) => ({
      about: "not compared",
      network,
      subject: `COINSLOT_RPC_URL_${network.split(":")[1]} names no endpoint`,
      amount: "",
    })),
  ];
}

function amountOf(
  network: Network,
  { asset, amount }: { asset: `0x${string}`; amount: bigint },
): string {
  const token = findKnownToken(network, asset);
  return token
    ? `${formatMoney(amount, token.decimals)} ${token.symbol}`
    : `${amount} units of ${asset}`;
}

export function printRows(terminal: Terminal, rows: readonly Row[]): void {
  if (rows.length === 0) return;
  const cells = rows.map(({ about, network, subject, amount }) => [
    about,
    network,
    amount,
    subject,
  ]);
  terminal.out(formatTable(terminal, [["found", "network", "amount", "what"], ...cells]));
}
