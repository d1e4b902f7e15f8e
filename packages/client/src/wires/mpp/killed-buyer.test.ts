import { readFileSync } from "node:fs";
import { useProgram } from "@coinslot/devnet/use-program";
import { eip3009Abi, type Hex } from "@coinslot/protocol";
import { expect, it, onTestFinished } from "vitest";
import { paymentOf } from "../../index.ts";
import { execute, sellByMpp, startMppSeller } from "../../testing/mpp-seller.ts";
import { type RunningScript, runScript } from "../../testing/run-script.ts";
import { payTo } from "../../testing/seller.ts";
import { useTemporaryFolder } from "../../testing/temporary-folder.ts";
import { useWorld } from "../../testing/world.ts";

const world = useWorld();
const inFolder = useTemporaryFolder();
const buyAndKeep = useProgram(new URL("../../testing/buy-and-keep.ts", import.meta.url));

it("a buyer that is killed after it has paid by MPP resumes by the same credential, and pays once", async () => {
  const { rpcUrl, accounts, client, token } = world.devnet();
  const read = { address: token, abi: eip3009Abi, functionName: "balanceOf" } as const;
  const readIncome = () => client.readContract({ ...read, args: [payTo] });
  const before = await readIncome();
  let buyer: RunningScript | undefined;
  let reference: Hex | undefined;
  const seller = world.keep(
    await startMppSeller({
      devnet: world.devnet(),
      onPaid: async (paid, response) => {
        if (reference !== undefined) {
          sellByMpp(response, paid, { reference });
          return true;
        }
        reference = await execute(world.devnet(), paid);
        buyer?.child.kill("SIGKILL");
        return true;
      },
    }),
  );
  const file = inFolder("kept.json");
  const { privateKey } = accounts.buyer;
  const running = runScript([process.execPath, buyAndKeep(), seller.url, rpcUrl, privateKey, file]);
  onTestFinished(async () => {
    running.child.kill("SIGKILL");
    await running.ended;
  });
  buyer = running;
  await running.ended;
  expect(running.child.signalCode).toBe("SIGKILL");

  const kept = JSON.parse(readFileSync(file, "utf8"));
  const response = await world.createFetch().resume(kept, seller.url);
  expect(await response.json()).toEqual({ forecast: "sun" });
  expect(paymentOf(response)?.state).toBe("settled");
  const [first, second] = seller.paid;
  expect(second?.header).toBe(first?.header);
  expect(world.account().signatures()).toBe(0);
  expect((await readIncome()) - before).toBe(1000n);
});
