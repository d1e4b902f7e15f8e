// Run by a test in several processes: each books until the limit, and prints its number of
// bookings.
import { bytesToHex } from "viem";
import { createFileStore } from "../budget/budget-file.ts";
import { createSpendingBudget } from "../budget/spending-budget.ts";
import { readBudget } from "../budget/spending-policy.ts";

const [file = "", wanted = "0"] = process.argv.slice(2);
const problems: string[] = [];
const [asset] = readBudget({ perHost: "$0.05", perDay: "$0.05" }, problems);
if (asset === undefined || problems.length > 0) throw new Error(problems.join());

const budget = createSpendingBudget({
  store: createFileStore(file),
  now: Date.now,
  chains: { wasUsed: async () => undefined, readTimes: async () => [Date.now()] },
});
const attempts = await Promise.all(
  Array.from({ length: Number(wanted) }, () =>
    budget.book({
      id: {
        network: asset.network,
        asset: asset.address,
        payer: asset.address,
        nonce: bytesToHex(crypto.getRandomValues(new Uint8Array(32))),
      },
      validBefore: Math.floor(Date.now() / 1000) + 300,
      asset,
      amount: 1000n,
      host: "shop.example",
    }),
  ),
);
process.stdout.write(String(attempts.filter(({ ok }) => ok).length));
