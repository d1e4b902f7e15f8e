import { expect, it } from "vitest";
import { hasWitnesses } from "./configured-networks.ts";

it("counts the RPC endpoints of one host as one witness, on whatever port", () => {
  const rpcUrls = ["https://rpc.example:8545", "https://rpc.example:8546/key"];
  expect(hasWitnesses({ rpcUrls })).toBe(false);
  expect(hasWitnesses({ rpcUrls: [...rpcUrls, "https://other.example"] })).toBe(true);
});

it("counts no WebSocket as a witness: it receives no question", () => {
  expect(hasWitnesses({ rpcUrls: ["https://rpc.example", "wss://other.example"] })).toBe(false);
});
