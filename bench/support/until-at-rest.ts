import { setTimeout as sleep } from "node:timers/promises";
import type { Devnet } from "@coinslot/devnet";

const everyMs = 50;
const looks = 10;

/**
 * Resolves once no block has come for half a second. Anvil queues a block for every transaction
 * that it receives while it mines another, also where that one takes both. After 128 at once it
 * goes on for seconds, with empty blocks.
 */
export async function untilAtRest({ client }: Pick<Devnet, "client">): Promise<void> {
  let newest: bigint | undefined;
  for (let unchanged = 0; unchanged < looks; unchanged += 1) {
    const number = await client.getBlockNumber({ cacheTime: 0 });
    if (number !== newest) unchanged = 0;
    newest = number;
    await sleep(everyMs);
  }
}
