import { appendFile, mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import type { PaymentTerms } from "@coinslot/client";
import { readRegularFile } from "@coinslot/hosting/environment";
import { addressSchema, amountSchema, bytes32Schema, networkSchema } from "@coinslot/protocol";
import * as z from "zod";
import type { PayContext } from "./pay-context.ts";
import { printable } from "./printable.ts";
import type { BuyerRequest } from "./read-request.ts";

const maxBytes = 64 * 2 ** 20;

/** A line of the history. Later lines of a payment change its state. */
const lineSchema = z.object({
  /** Unix milliseconds. */
  at: z.number(),
  state: z.string(),
  method: z.string(),
  url: z.string(),
  terms: z.object({
    network: networkSchema,
    asset: addressSchema,
    payer: addressSchema,
    payTo: addressSchema,
    amount: amountSchema,
    nonce: bytes32Schema,
    validBefore: z.number().int(),
    channel: z
      .object({ id: bytes32Schema, ceiling: amountSchema, deposit: amountSchema.optional() })
      .optional(),
  }),
  transaction: z.string().optional(),
});

/** A payment of `coinslot pay`. */
export type PastPayment = z.infer<typeof lineSchema>;

/**
 * Adds a line to the history of this user. The URL is kept without query and credentials, which may
 * be secrets. Never throws: what is paid is paid.
 */
export async function notePayment(
  { terminal, io }: PayContext,
  noted: {
    state: "sent" | "settled" | "rejected" | "unclear";
    request: BuyerRequest;
    terms: PaymentTerms;
    transaction?: string | undefined;
  },
): Promise<void> {
  const file = io.historyFile;
  if (file === undefined) return;
  const { state, request, terms, transaction } = noted;
  const { origin, pathname } = new URL(request.url);
  const url = `${origin}${pathname}`;
  const line: PastPayment = {
    at: io.now(),
    state,
    method: request.method,
    url,
    terms,
    transaction,
  };
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    await appendFile(file, `${JSON.stringify(line)}\n`, { mode: 0o600 });
  } catch (error) {
    const why = printable(error instanceof Error ? error.message : String(error));
    terminal.err(`The payment could not be added to the history: ${why}.`);
  }
}

/**
 * The payments of the history, the newest first. A line that a crash has cut is passed over.
 *
 * @throws Error when it cannot be read
 */
export function readHistory(file: string): PastPayment[] {
  const payments = new Map<string, PastPayment>();
  for (const text of readText(file).split("\n")) {
    const line = parseLine(text);
    if (line === undefined) continue;
    const { network, asset, payer, nonce } = line.terms;
    const name = `${network} ${asset} ${payer} ${nonce}`.toLowerCase();
    const earlier = payments.get(name);
    const { transaction = earlier?.transaction } = line;
    payments.set(name, { ...line, at: earlier?.at ?? line.at, transaction });
  }
  return [...payments.values()].reverse();
}

function parseLine(text: string): PastPayment | undefined {
  try {
    return lineSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

function readText(file: string): string {
  try {
    return readRegularFile(file, maxBytes);
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return "";
    throw new Error("The history cannot be read", { cause });
  }
}
