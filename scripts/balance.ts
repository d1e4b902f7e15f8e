// A load balancer as plain as they come, to stand for yours:
//     npm run balance -- 4020 4021 4022
// Each connection to the first port goes to the next of the others that takes it.
import { once } from "node:events";
import { startBalancer } from "./balance/round-robin.ts";

const ports = process.argv.slice(2).map(Number);
const [port, ...backends] = ports;
const arePorts = ports.every((each) => Number.isInteger(each) && each >= 0 && each <= 65_535);
if (port === undefined || backends.length === 0 || !arePorts) {
  console.error("Usage: npm run balance -- <port> <port of a server> <port of another> …");
  process.exit(1);
}
const stop = Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
const balancer = await startBalancer({ port, backends }).catch((error: unknown) => {
  console.error(
    `Port ${port} cannot be listened on: ${error instanceof Error ? error.message : error}`,
  );
  process.exit(1);
});
console.log(`${balancer.url} leads to ${backends.join(", ")} in turn. Ctrl-C stops it.`);
await stop;
await balancer.close();
