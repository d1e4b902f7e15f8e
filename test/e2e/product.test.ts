import { fileURLToPath } from "node:url";
import { type Program, type ProgramPlace, startProgram, startSource } from "@coinslot/devnet";
import { describe, expect, it, onTestFinished } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** All of them run here: a typed command may need a HOME. */
function place(env?: Record<string, string>): ProgramPlace {
  return { folder: root, env: { HOME: process.env.HOME ?? "", ...env } };
}

function run(args: readonly string[], env?: Record<string, string>): Program {
  const program = startSource(args, place(env));
  onTestFinished(program.kill);
  return program;
}

// Each starts programs, which takes its time beside everything else that runs.
describe("the demonstration", { timeout: 120_000 }, () => {
  it("makes three purchases, gives one back, finds no difference in the books, and ends", async () => {
    const demo = run(["scripts/demo.ts"]);
    expect({ code: await demo.ended, said: demo.printed() }).toEqual({
      code: 0,
      said: expect.stringContaining("Sold."),
    });
    expect(demo.printed().match(/402 Payment Required/g)).toHaveLength(3);
    expect(demo.printed().match(/ms +0x[0-9a-f]{64}\n/g)).toHaveLength(3);
    expect(demo.printed()).toMatch(/seller +0 +0\.005 USDT0 +\+0\.005/);
    expect(demo.printed()).toMatch(/refund +0\.001 USDT0 to 0x[0-9a-f]{40}, final\n/);
    expect(demo.printed()).toMatch(/No difference\. \d+ rows compared; 4 final transfers found/);
  });

  it("names the port in use, and ends with 1", async () => {
    for (const port of ["abc", "70000"]) {
      const market = run(["scripts/start.ts"], { PAID_INDEXER_PORT: port });
      expect(await market.ended).toBe(1);
      expect(market.printed()).toContain("PAID_INDEXER_PORT: must be a whole number from 0 to");
    }
    const balancer = run(["scripts/balance.ts", "99999", "4031"]);
    expect(await balancer.ended).toBe(1);
    expect(balancer.printed()).toMatch(/^Usage: /);
  });

  it("keeps running on request, and its printed commands work as printed", async () => {
    const market = run(["scripts/start.ts"], { PAID_INDEXER_PORT: "0" });
    await market.waitFor(/Ctrl-C stops it\./);
    const lines = market.printed().match(/^(?:curl|export|npm) .*$/gm) ?? [];
    expect(lines).toHaveLength(7);
    const typed = startProgram("sh", ["-euc", lines.join("\n")], place());
    onTestFinished(typed.kill);
    expect({ code: await typed.ended, said: typed.printed() }).toMatchObject({ code: 0 });
    expect(typed.printed().match(/HTTP\/1.1 402/g)).toHaveLength(2);
    expect(typed.printed()).toContain('{"transfers":[{');
    expect(typed.printed()).toContain('[{"tokenBalance":{');

    market.child.kill("SIGINT");
    expect(await market.ended).toBe(0);
    expect(market.printed()).toMatch(/Stopped\.\n$/);
  });
});
