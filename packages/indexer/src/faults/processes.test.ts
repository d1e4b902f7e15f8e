import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { effort } from "@coinslot/devnet/effort";
import { useProgram } from "@coinslot/devnet/use-program";
import { describe, expect, it } from "vitest";
import { engines } from "../testing/engines.ts";
import { expectExact } from "../testing/oracle.ts";
import { startIndexer, startUsedChain, stepRandomly, usdtOf } from "../testing/scene.ts";
import { randomOf } from "../testing/seeded-random.ts";

const program = useProgram(new URL("../testing/indexer-program.ts", import.meta.url));

describe.each(engines)("indexer processes, on $engine", ({ engine, createUrl }) => {
  it(
    "leave neither a gap nor a duplicate when they are killed at any point",
    async () => {
      const random = randomOf(`SIGKILL on ${engine}`);
      const devnet = await startUsedChain(40);
      const database = await createUrl();
      for (let kill = 0; kill < 6 * effort; kill++) {
        const child = fork(program(), [devnet.rpcUrl, database], { execArgv: [] });
        const exited = once(child, "exit");
        await once(child, "message");
        const steps = random.between(1, 3);
        for (let step = 0; step < steps; step++) await stepRandomly(devnet, random);
        await pause(random.between(0, 150));
        child.kill("SIGKILL");
        expect((await exited)[1]).toBe("SIGKILL");
      }
      const indexer = await startIndexer({ rpcUrls: [devnet.rpcUrl], database });
      await expectExact(indexer, devnet, usdtOf(devnet));
    },
    120_000 * effort,
  );

  it("share a database: one writes, the other serves, and takes over", async () => {
    const devnet = await startUsedChain();
    const database = await createUrl();
    // A busy machine may stop the writer for longer than a short lease, which then goes to the
    // other.
    const options = { rpcUrls: [devnet.rpcUrl], database, leaseMs: 15_000 };
    const first = await startIndexer(options);
    await expectExact(first, devnet, usdtOf(devnet));
    const second = await startIndexer(options);
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 3n });
    // Its answers come from the writer.
    await expectExact(second, devnet, usdtOf(devnet));
    expect((await first.status()).role).toBe("writer");
    await expect
      .poll(() => second.status(), { timeout: 20_000 })
      .toMatchObject({ role: "standby", health: "healthy" });
    await first.close();
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 4n });
    await expectExact(second, devnet, usdtOf(devnet));
    expect((await second.status()).role).toBe("writer");
  });
});
