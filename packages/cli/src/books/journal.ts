import { createHash } from "node:crypto";
import type { BookEntry } from "@coinslot/facilitator";
import { formatMoney } from "@coinslot/protocol";
import { replaceUnsafe } from "../safe-text.ts";
import { formatDay } from "./book-range.ts";
import type { Currency } from "./currency.ts";
import type { Movement } from "./movement.ts";

/** Dollars for one whole coin, by the code of its currency. */
export type Rates = ReadonlyMap<string, string>;

/** Writes movements in the format of a program for plain text accounting. */
export interface JournalFormat {
  /** Text before the first movement. */
  begin: string;
  /** One movement, with what must stand before it. */
  write(movement: Movement, currency: Currency): string;
}

/** Parts of the account names. The first is one of the five roots of accounting. */
const accountNames: Record<BookEntry["debit"], string> = {
  wallet: "Assets:Coinslot:Wallet",
  float: "Assets:Coinslot:Float",
  relayers: "Assets:Coinslot:Relayers",
  escrow: "Liabilities:Coinslot:Escrow",
  income: "Income:Coinslot",
  refunds: "Expenses:Coinslot:Refunds",
  gas: "Expenses:Coinslot:Gas",
  fees: "Expenses:Coinslot:Fees",
  losses: "Expenses:Coinslot:Losses",
  receivable: "Assets:Coinslot:Receivable",
  claimed: "Assets:Coinslot:Claimed",
  locked: "Assets:Coinslot:Locked",
};

/**
 * The beancount format, version 2 and 3: https://beancount.github.io/docs/beancount_language_syntax
 */
export function beancountFormat(rates: Rates, lastDay: number): JournalFormat {
  const opened = new Set<string>();
  return {
    begin: 'option "title" "Coinslot"\n\n',
    write(movement, currency) {
      const day = formatDay(movement.time ?? lastDay);
      const accounts = accountsOf(movement);
      const opening = accounts
        .filter((account) => !opened.has(account))
        .map((account) => {
          opened.add(account);
          return `1970-01-01 open ${account}\n`;
        });
      const amount = formatMoney(movement.amount, currency.decimals);
      const price = priceOf(rates, currency);
      const lines = [
        `${day} * "Coinslot" "${quoted(describe(movement))}"`,
        ...factsOf(movement).map(([name, value]) => `  ${name}: "${quoted(value)}"`),
        `  ${accounts[0]}  ${amount} ${currency.code}${price}`,
        `  ${accounts[1]}  -${amount} ${currency.code}${price}`,
      ];
      return `${opening.join("")}${lines.join("\n")}\n\n`;
    },
  };
}

/** The format of ledger: https://ledger-cli.org/doc/ledger3.html */
export function ledgerFormat(rates: Rates, lastDay: number): JournalFormat {
  return {
    begin: "",
    write(movement, currency) {
      const day = formatDay(movement.time ?? lastDay).replaceAll("-", "/");
      const [debit, credit] = accountsOf(movement);
      const amount = formatMoney(movement.amount, currency.decimals);
      // A commodity with a digit needs quotes.
      const code = `"${currency.code}"`;
      const price = priceOf(rates, currency);
      const lines = [
        `${day} * Coinslot, ${replaceUnsafe(describe(movement)).replaceAll(";", ",")}`,
        ...factsOf(movement).map(([name, value]) => `    ; ${name}: ${replaceUnsafe(value)}`),
        `    ${debit}  ${amount} ${code}${price}`,
        `    ${credit}  -${amount} ${code}${price}`,
      ];
      return `${lines.join("\n")}\n\n`;
    },
  };
}

function priceOf(rates: Rates, { code }: Currency): string {
  const rate = rates.get(code);
  return rate === undefined ? "" : ` @ ${rate} USD`;
}

function accountsOf(movement: Movement): [debit: string, credit: string] {
  return [accountOf(movement.debit, movement), accountOf(movement.credit, movement)];
}

function accountOf(account: BookEntry["debit"], { network, route }: Movement): string {
  const parts = [accountNames[account]];
  if (network !== undefined) parts.push(network.replace("eip155:", "Eip155-"));
  if (account === "income") parts.push(route === undefined ? "Sales" : componentOf(route));
  return parts.join(":");
}

const maxComponent = 60;

/**
 * A part of an account name: letters, digits and dashes, the first one an upper-case letter or a
 * digit. Routes that differ elsewhere have different hashes.
 */
export function componentOf(text: string): string {
  const plain = text
    .replace(/[^A-Za-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, maxComponent);
  const begins = /^[A-Z0-9]/.test(plain) ? plain : `R-${plain}`;
  const hash = createHash("sha256").update(text).digest("hex").slice(0, 8);
  return `${begins}-${hash}`.replace(/-+/g, "-");
}

const words: Record<BookEntry["kind"], [one: string, many: string]> = {
  payment: ["payment", "payments"],
  refund: ["refund", "refunds"],
  gas: ["gas", "transactions' gas"],
  loss: ["loss", "losses"],
  locked: ["money in a channel", "changes of money in channels"],
  charge: ["charge of a channel", "charges of channels"],
  claim: ["claim", "claims"],
  payout: ["payout", "payouts"],
};

function describe({ kind, isReversal, count, route }: Movement): string {
  const [one, many] = words[kind];
  const counted = count === 1 ? one : `${count} ${many}`;
  return `${isReversal ? "reversal of " : ""}${counted}${route === undefined ? "" : `, ${route}`}`;
}

function factsOf({ entry }: Movement): [name: string, value: string][] {
  if (entry === undefined) return [];
  const { sourceId, transaction, payer, payTo, isFinal } = entry;
  const facts: [string, string][] = [["source", sourceId]];
  if (transaction !== undefined) facts.push(["transaction", transaction]);
  if (payer !== undefined) facts.push(["payer", payer]);
  if (payTo !== undefined) facts.push(["payto", payTo]);
  if (isFinal !== undefined) facts.push(["state", isFinal ? "final" : "pending"]);
  return facts;
}

/** Text of a string in quotes. */
function quoted(text: string): string {
  return replaceUnsafe(text).replaceAll("\\", "\\\\").replaceAll('"', '\\"');
}
