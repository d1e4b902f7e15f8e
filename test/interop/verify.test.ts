import { runCli } from "@coinslot/cli";
import type { Devnet } from "@coinslot/devnet";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readDocument } from "../docs/code-block.ts";
import { startUsdcDevnet } from "../support/usdc-devnet.ts";
import { verifiedSellers } from "../support/verified-sellers.ts";
import { keyOf, verifyOne } from "../support/verify-sellers.ts";

let devnet: Devnet;

beforeAll(async () => {
  devnet = await startUsdcDevnet();
});

afterAll(async () => {
  await devnet?.stop();
});

/** The documented status of a check, by the seller's name. */
function documentedStatuses(name: string): Map<string, string> {
  const lines = readDocument("docs/verifying.md")
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .map((line) => line.split("|").map((cell) => cell.trim()));
  const heading = lines.find((cells) => cells.includes(name)) ?? [];
  const column = heading.indexOf(name);
  const rows = lines.slice(lines.indexOf(heading) + 2).filter((cells) => cells[column] !== "");
  return new Map(rows.map((cells) => [cells[1] ?? "", cells[column] ?? ""]));
}

describe("coinslot verify", () => {
  it.each(verifiedSellers)("finds in $name what the documentation says", async (seller) => {
    const isOurs = seller.name === "@coinslot/express";
    // The other sellers run every copy of a payment: which one wins is theirs, and the chain's.
    const racing = isOurs ? [] : ["concurrent", "protocols"];
    const checks = (await namesOfChecks()).filter((name) => !racing.includes(name));
    const findings = await verifyOne(devnet, seller, ["--only", checks.join(",")]);
    const found = new Map(findings.map((row) => [keyOf(row), row.status]));
    const documented = [...documentedStatuses(seller.name)].filter(([key]) => {
      return !racing.some((name) => key.startsWith(`\`${name}\``));
    });
    expect(found).toEqual(new Map(documented));
  });
});

/** The checks that the help text names. */
async function namesOfChecks(): Promise<string[]> {
  let help = "";
  await runCli(["verify", "--help"], {
    out: (text) => {
      help += text;
    },
    err: () => undefined,
    confirm: undefined,
    isColourful: false,
    env: {},
    signal: new AbortController().signal,
  });
  const [, names = ""] = /separated by commas, of:([\s\S]*?)--unpaid/.exec(help) ?? [];
  return names.split(",").map((name) => name.trim());
}
