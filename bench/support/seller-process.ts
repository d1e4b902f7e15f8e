// A seller in a process of its own, as the HTTP scenarios measure it. It sends its parent by IPC
// its port once it listens, and its memory, descriptors and processor time on request.
import { readdirSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { PaymentRequirements } from "@coinslot/protocol";
import express, { type RequestHandler } from "express";

/** The parent's options in the environment variable `SELLER`. */
export interface SellerOptions {
  kind: "ours" | "channels" | "reference" | "reference channels" | "bare";
  rpcUrl: string;
  chainId: number;
  /** The reference implementation has one address, of a private key. */
  relayer:
    | { privateKey: `0x${string}` }
    | { seedPhrase: string; accountIndex: number; addressCount: number };
  ledger: string;
  requirements: PaymentRequirements;
  /** Challenges of MPP beside the offers of x402. Default: those for tokens that buyers know. */
  mpp?: boolean;
  /** Key of a console on a listener of its own, in the same process. Default: there is none. */
  consoleKey?: string;
  /** A page with which people pay, beside the offers for programs. Default `false`. */
  hasPaywall?: boolean;
}

const options: SellerOptions = JSON.parse(process.env.SELLER ?? "");

const app = express();
app.disable("x-powered-by");
const { gate, consoleUrl, close } = await createGate();
if (gate !== undefined) app.use(gate);
app.get("/weather", (_request, response) => {
  response.json({ forecast: "sun" });
});
const server = createServer(app).listen(0, "127.0.0.1", () => {
  process.send?.({ port: (server.address() as AddressInfo).port, consoleUrl });
});
let peak = 0;
setInterval(() => {
  peak = Math.max(peak, process.memoryUsage.rss());
}, 50).unref();
process.on("message", () => {
  server.getConnections((_error, connections = 0) => {
    const { user, system } = process.cpuUsage();
    const memory = Math.max(peak, process.memoryUsage.rss());
    process.send?.({
      memory,
      memoryNow: process.memoryUsage.rss(),
      descriptors: countDescriptors(),
      connections,
      processorSeconds: (user + system) / 1e6,
    });
  });
});
process.on("disconnect", () => process.exit());
// In order: running requests are answered, then the relayers are given back.
process.on("SIGTERM", () => {
  server.close(() => void close().finally(() => process.exit()));
  server.closeIdleConnections();
});

/** Open files and sockets; 0 on a system without `/proc`. */
function countDescriptors(): number {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    return 0;
  }
}

/** Each loads its own code only, as a real seller would. */
async function createGate(): Promise<{
  gate?: RequestHandler;
  consoleUrl?: string;
  close: () => Promise<void>;
}> {
  const close = async () => undefined;
  switch (options.kind) {
    case "bare":
      return { close };
    case "ours": {
      const { createOurGate } = await import("./our-gate.ts");
      return createOurGate(options);
    }
    case "channels": {
      const { createOurChannelGate } = await import("./our-channel-gate.ts");
      return createOurChannelGate(options);
    }
    case "reference channels": {
      const { createReferenceChannelGate } = await import("./reference-channel-gate.ts");
      return { gate: createReferenceChannelGate(options), close };
    }
    case "reference": {
      const { createReferenceGate } = await import("./reference-gate.ts");
      return { gate: createReferenceGate(options), close };
    }
  }
}
