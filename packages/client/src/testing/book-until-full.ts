// Run by a test in processes that it kills. Books until a limit is reached, and prints the nonce of
// each booking.
import { bytesToHex } from "viem";
import { createFileStore } from "../budget/budget-file.ts";
import { createSpendingBudget } from "../budget/spending-budget.ts";
import { readBudget } from "../budget/spending-policy.ts";

const [file = "", limit = "$0"] = process.argv.slice(2);
const problems: string[] = [];
const [asset] = readBudget({ perPayment: "$0.001", perHost: limit, perDay: limit }, problems);
if (asset === undefined || problems.length > 0) throw new Error(problems.join());

const { network, address } = asset;
const budget = createSpendingBudget({
  store: createFileStore(file),
  now: Date.now,
  chains: { wasUsed: async () => undefined, readTimes: async () => [Date.now()] },
});
for (;;) {
  const nonce = bytesToHex(crypto.getRandomValues(new Uint8Array(32)));
  const { ok } = await budget.book({
    id: { network, asset: address, payer: address, nonce },
    validBefore: Math.floor(Date.now() / 1000) + 300,
    asset,
    amount: 1000n,
    host: "shop.example",
  });
  if (!ok) break;
  process.stdout.write(`${nonce}\n`);
}
