// Writes src/chains/usdt-deployments.generated.ts from the table of USDT0 deployments in the form
// in which they are published: tsx scripts/generate-usdt-deployments.ts usdt0-chains.json
import { readFileSync, writeFileSync } from "node:fs";
import { getAddress } from "viem";
import * as z from "zod";

const tableSchema = z.object({
  tokens: z.object({ USDT0: z.object({ decimals: z.number() }) }),
  chains: z.array(
    z.object({
      key: z.string(),
      type: z.string(),
      chainId: z.number(),
      token: z.string().optional(),
    }),
  ),
});

const [file = ""] = process.argv.slice(2);
const { chains, tokens } = tableSchema.parse(JSON.parse(readFileSync(file, "utf8")));
const rows = chains.flatMap(({ key, type, chainId, token }) =>
  type === "evm" && token !== undefined
    ? [`  ${key}: { chainId: ${chainId}, address: "${getAddress(token)}" },`]
    : [],
);
const text = `// Written by scripts/generate-usdt-deployments.ts. Do not edit.

/**
 * The addresses of USDT on the EVM chains that USDT0 connects: the original on Ethereum, USDT0 on
 * the others. As of August 2026.
 */
export const usdtDeployments = {
${rows.join("\n")}
} as const;

export const usdtDecimals = ${tokens.USDT0.decimals};
`;
writeFileSync(new URL("../src/chains/usdt-deployments.generated.ts", import.meta.url), text);
