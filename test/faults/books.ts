import { runCli } from "@coinslot/cli";
import type { Devnet } from "@coinslot/devnet";
import * as z from "zod";
import type { Bought } from "./buyer.ts";
import type { ChainRecord } from "./chain-record.ts";

const transferSchema = z.looseObject({ transaction: z.string() });

const checkSchema = z.object({
  checked: z.number(),
  faults: z.array(z.unknown()),
  isUnfinished: z.boolean(),
  unconfigured: z.array(z.string()),
  chains: z.array(
    z.object({
      found: z.number(),
      pending: z.number(),
      missing: z.array(z.unknown()),
      unposted: z.array(transferSchema),
      foreign: z.array(transferSchema),
    }),
  ),
});

/** The differences that `coinslot books check` finds, as an operator would run it. */
export async function checkBooks(options: {
  ledger: string;
  devnet: Devnet;
  chain: ChainRecord;
  bought: readonly Bought[];
}): Promise<{ words: string; violations: string[] }> {
  const { ledger, devnet, chain, bought } = options;
  const { out, err } = await run(["books", "check", "--ledger", ledger, "--json"], {
    [`COINSLOT_RPC_URL_${devnet.network.split(":")[1]}`]: devnet.rpcUrl,
  });
  const read = checkSchema.safeParse(parse(out));
  if (!read.success) return { words: "none", violations: [`books check failed: ${err}`] };
  const { checked, faults, chains, isUnfinished, unconfigured } = read.data;
  // Executed by a stranger, and released before by a seller that was not paid then.
  const strangers = new Set(
    bought.flatMap(({ purchase }) =>
      purchase.interference === "submitted" ? chain.executionsOf(purchase) : [],
    ),
  );
  const violations = [
    ...faults.map((fault) => `the books differ from the payments: ${JSON.stringify(fault)}`),
    ...chains.flatMap(({ missing, unposted, foreign }) => [
      ...missing.map((each) => `the books have a transfer of no chain: ${JSON.stringify(each)}`),
      ...[...unposted, ...foreign]
        .filter(({ transaction }) => !strangers.has(transaction as `0x${string}`))
        .map((each) => `the books lack a transfer: ${JSON.stringify(each)}`),
    ]),
    ...(isUnfinished ? ["the books are not all posted"] : []),
    ...unconfigured.map((network) => `the books were not compared on ${network}`),
  ];
  const found = chains.reduce((sum, each) => sum + each.found, 0);
  return { words: `${checked} rows compared, ${found} transfers found`, violations };
}

async function run(args: readonly string[], env: Record<string, string>) {
  const ran = { out: "", err: "" };
  await runCli(args, {
    out: (text) => {
      ran.out += `${text}\n`;
    },
    err: (text) => {
      ran.err += `${text}\n`;
    },
    confirm: undefined,
    isColourful: false,
    env,
    signal: new AbortController().signal,
  });
  return ran;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
