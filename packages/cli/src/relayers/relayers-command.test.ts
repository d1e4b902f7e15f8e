import { join } from "node:path";
import { startDevnet } from "@coinslot/devnet";
import { toLowerHex } from "@coinslot/protocol";
import { expect, it, onTestFinished } from "vitest";
import { exitCode } from "../exit-code.ts";
import { inFolder, runCoinslot } from "../testing/run-coinslot.ts";
import { startTestSeller } from "../testing/test-seller.ts";

it("coinslot relayers shows a relayer beside its seller, and what it holds once it is retired", async () => {
  const devnet = await startDevnet();
  onTestFinished(() => devnet.stop());
  await inFolder(async (folder) => {
    const ledger = `sqlite:${join(folder, "ledger.db")}`;
    const env = {
      COINSLOT_LEDGER: ledger,
      COINSLOT_NETWORK: devnet.network,
      COINSLOT_RPC_URL: devnet.rpcUrl,
    };
    const relayer = toLowerHex(devnet.accounts.relayer.address);
    const seller = await startTestSeller({ devnet, ledger });
    try {
      const beside = await runCoinslot(["relayers"], { env });
      expect(beside).toMatchObject({ code: exitCode.done, err: "" });
      expect(beside.out).toMatch(
        new RegExp(`^${relayer} +eip155:9745 +active +0 +10000 XPL$`, "m"),
      );
    } finally {
      await seller.stop();
    }
    const after = await runCoinslot(["relayers", "--json"], { env });
    expect(JSON.parse(after.out)).toMatchObject({
      relayers: [{ relayer, state: "retired", inFlight: 0, balance: String(10_000n * 10n ** 18n) }],
    });
    const { err } = await runCoinslot(["relayers"], { env });
    expect(err).toContain(`${relayer}: its coins are not used any more.`);
  });
});
