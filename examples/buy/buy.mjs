// Buys one URL within a budget, and prints the answer: node buy.mjs <url>
import { createPayingFetch, OutcomeUnclearError, PaymentError, receiptOf } from "@coinslot/client";

const { COINSLOT_RPC_URL, WALLET_PRIVATE_KEY } = process.env;
const [url] = process.argv.slice(2);

const pay = createPayingFetch({
  privateKey: WALLET_PRIVATE_KEY, // needs the stablecoin, and no gas
  rpcUrls: { "eip155:9745": COINSLOT_RPC_URL },
  budget: { perPayment: "$0.01", perHost: "$0.50", perDay: "$1", file: "./budget.json" },
});

try {
  const response = await buy();
  for await (const chunk of response.body) process.stdout.write(chunk);
  console.error(`\n${response.status}`, receiptOf(response)?.transaction ?? "not charged");
} catch (error) {
  if (!(error instanceof PaymentError)) throw error;
  console.error(`Not paid: ${error.code}: ${error.message}`);
  process.exitCode = 1;
}

/** Sends the same payment once more if its outcome is unclear. It never signs a second one. */
async function buy() {
  try {
    return await pay(url);
  } catch (error) {
    if (!(error instanceof OutcomeUnclearError)) throw error;
    return pay.resume(error.payment, url);
  }
}
