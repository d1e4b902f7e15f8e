import { describe, expect, it } from "vitest";
import { indexerChain, indexerChainNames } from "./chains/indexer-chain.ts";
import { readConfiguration } from "./configuration.ts";
import { IndexerConfigurationError } from "./configuration-error.ts";

const rpcUrls = ["https://rpc.example"];

describe("readConfiguration", () => {
  it("accepts every preset, and adds the chain's known values", () => {
    const chains = indexerChainNames().map((name) => indexerChain(name, { rpcUrls }));
    const configuration = readConfiguration({ chains });
    expect(configuration.database).toBe("sqlite:./indexer.db");
    expect(configuration.chains.find(({ name }) => name === "plasma")).toMatchObject({
      chainId: 9745,
      finality: { finalizedTag: false, depth: 10 },
      tokens: [
        { name: "usdt", address: "0xb8ce59fc3717ada4c02eadf9682a9e934f625ebb", decimals: 6 },
      ],
    });
  });

  it("reports all faults at once, and never a URL", () => {
    const input = {
      chains: [
        { name: "Plasma", chainId: 0, rpcUrls: ["ftp://secret"], tokens: [] },
        { name: "b", chainId: 2, rpcUrls, tokens: [{ name: "t", address: "0x12", decimals: 6 }] },
      ],
      database: "mysql://secret",
      colour: "blue",
    };
    const error = catchError(() => readConfiguration(input));
    expect(error).toBeInstanceOf(IndexerConfigurationError);
    const text = String(error);
    for (const place of [
      "name",
      "chainId",
      "rpcUrls[0]",
      "tokens",
      "tokens[0].address",
      "database",
      "colour",
    ])
      expect(text).toContain(place);
    expect(text).not.toContain("secret");
    expect(error).toMatchObject({
      problems: expect.arrayContaining(['Unrecognized key: "colour"']),
    });
  });

  it("refuses duplicates of a name, chain or address", () => {
    const chain = indexerChain("plasma", { rpcUrls });
    const twice = { ...chain, tokens: [...chain.tokens, ...chain.tokens] };
    const error = catchError(() => readConfiguration({ chains: [twice, twice] }));
    expect(error).toMatchObject({
      problems: expect.arrayContaining([
        "chains: name plasma is listed twice",
        "chains: chain id 9745 is listed twice",
        "tokens of plasma: name usdt is listed twice",
      ]),
    });
  });
});

function catchError(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  return undefined;
}
