// Run by a test that kills it: buys by a channel, until the kill.
import { plasma } from "@coinslot/protocol";
import { createPayingFetch } from "../index.ts";

const [url = "", rpcUrl = "", privateKey = "", file = "", kept = ""] = process.argv.slice(2);
const pay = createPayingFetch({
  privateKey,
  rpcUrls: { [plasma]: rpcUrl },
  channels: { file },
  budget: { file: kept },
});
for (;;) {
  await pay(url);
  process.stdout.write("bought\n");
}
