// Run by a test that kills it: buys by MPP, and keeps the payment in a file before it is sent.
import { writeFileSync } from "node:fs";
import { plasma } from "@coinslot/protocol";
import { createPayingFetch } from "../index.ts";

const [url = "", rpcUrl = "", privateKey = "", file = ""] = process.argv.slice(2);
const pay = createPayingFetch({
  privateKey,
  rpcUrls: { [plasma]: rpcUrl },
  beforeSend: (payment) => writeFileSync(file, JSON.stringify(payment)),
});
await pay(url);
