import { runCli } from "@coinslot/cli";
import type { Devnet } from "@coinslot/devnet";
import * as z from "zod";
import { startUsdcDevnet } from "./usdc-devnet.ts";
import { type VerifiedSeller, verifiedEnvironment, verifiedSellers } from "./verified-sellers.ts";

const resultSchema = z.object({
  findings: z.array(
    z.object({
      check: z.string(),
      protocol: z.string().optional(),
      status: z.string(),
      found: z.string(),
    }),
  ),
});

/** One check of one seller. */
type VerifiedRow = z.infer<typeof resultSchema>["findings"][number];

/** Findings by the seller's name. */
export type VerifiedRows = ReadonlyMap<string, readonly VerifiedRow[]>;

/** Runs `coinslot verify` against every seller. */
export async function verifySellers(): Promise<VerifiedRows> {
  const devnet = await startUsdcDevnet();
  try {
    const rows = new Map<string, readonly VerifiedRow[]>();
    for (const seller of verifiedSellers) rows.set(seller.name, await verifyOne(devnet, seller));
    return rows;
  } finally {
    await devnet.stop();
  }
}

/** Runs `coinslot verify` against a seller, with its routes for replays and failures. */
export async function verifyOne(
  devnet: Devnet,
  seller: VerifiedSeller,
  options: readonly string[] = [],
): Promise<VerifiedRow[]> {
  const running = await seller.start(devnet);
  const lines: string[] = [];
  try {
    const routes = ["--other", "/news", "--failing", "/broken"];
    await runCli(["verify", `${running.url}/weather`, ...routes, "--json", ...options], {
      out: (text) => lines.push(text),
      err: () => undefined,
      confirm: undefined,
      isColourful: false,
      env: verifiedEnvironment(devnet),
      signal: new AbortController().signal,
    });
    return resultSchema.parse(JSON.parse(lines.join("\n"))).findings;
  } finally {
    await running.close();
  }
}

/** The findings as the table of the documentation: a row for each check and protocol. */
export function formatVerifiedTable(verified: VerifiedRows): string {
  const names = [...verified.keys()];
  const keys = new Set([...verified.values()].flatMap((rows) => rows.map(keyOf)));
  const lines = [...keys].map((key) => {
    const cells = names.map((name) => {
      const row = verified.get(name)?.find((each) => keyOf(each) === key);
      return row?.status ?? "";
    });
    return `| ${key} | ${cells.join(" | ")} |`;
  });
  return [`| Check | ${names.join(" | ")} |`, `|---${"|---".repeat(names.length)}|`, ...lines].join(
    "\n",
  );
}

/** A check, with its protocol where it has one. */
export function keyOf({ check, protocol }: Pick<VerifiedRow, "check" | "protocol">): string {
  return protocol === undefined ? `\`${check}\`` : `\`${check}\`, ${protocol}`;
}
