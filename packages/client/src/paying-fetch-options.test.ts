import { plasma } from "@coinslot/protocol";
import { describe, expect, it } from "vitest";
import { createPayingFetch, type PayingFetchOptions, PaymentError } from "./index.ts";

const privateKey = `0x${"11".repeat(32)}` as const;
const rpcUrls = { [plasma]: "https://rpc.example/v2/key-1234" };

function problemOf(options: PayingFetchOptions): PaymentError {
  try {
    createPayingFetch(options);
  } catch (error) {
    if (error instanceof PaymentError) return error;
    throw error;
  }
  throw new Error("The options were accepted");
}

describe("createPayingFetch", () => {
  it("reports all faults of its options at once, when it is called", () => {
    const error = problemOf({
      privateKey: "0x1234",
      rpcUrls: { [plasma]: [], "eip155:988": "ftp://rpc.example" },
      budget: { perDay: "much" },
      maxAttempts: 0,
      balanceTimeoutMs: Number.NaN,
    });
    expect(error.code).toBe("invalid_configuration");
    expect(error.message.split("; ")).toEqual([
      "createPayingFetch: privateKey is not a valid key of 32 bytes in hex",
      "balanceTimeoutMs is not a positive integer",
      'rpcUrls["eip155:9745"] needs http or https URLs',
      'rpcUrls["eip155:988"] needs http or https URLs',
      'budget.perDay is not an amount such as "$0.10"',
      "maxAttempts is not a positive integer",
    ]);
  });

  it("refuses a time above a timer's range, which would fire at once", () => {
    const forEver = Number.MAX_SAFE_INTEGER;
    const error = problemOf({ privateKey, rpcUrls, attemptTimeoutMs: forEver, maxWaitMs: 2 ** 31 });
    expect(error.message.split("; ")).toEqual([
      "createPayingFetch: attemptTimeoutMs is longer than 2147483647",
      "maxWaitMs is longer than 2147483647",
    ]);
    const longest = 2 ** 31 - 1;
    createPayingFetch({ privateKey, rpcUrls, balanceTimeoutMs: longest, maxBodyBytes: forEver });
  });

  it("refuses a validity beyond the hour that the budget counts ahead", () => {
    const error = problemOf({ privateKey, rpcUrls, maxValiditySeconds: 3601 });
    expect(error.message).toBe("createPayingFetch: maxValiditySeconds is longer than 3600");
    createPayingFetch({ privateKey, rpcUrls, maxValiditySeconds: 3600 });
  });

  it("requires exactly one signer, and a network", () => {
    const message = "createPayingFetch: give exactly one of account, seedPhrase and privateKey";
    const both: object = { privateKey, seedPhrase: "test" };
    expect(problemOf({ privateKey, rpcUrls: {}, ...both }).message).toBe(
      `${message}: more than one is set; rpcUrls names no network`,
    );
    // The value of an unset environment variable.
    expect(problemOf({ seedPhrase: undefined, rpcUrls: { [plasma]: undefined } }).message).toBe(
      `${message}: none is set; rpcUrls["eip155:9745"] needs http or https URLs`,
    );
  });

  it("repeats no secret in its errors", () => {
    const phrase =
      "correct horse battery staple correct horse battery staple wrong wrong wrong wrong";
    const key = `0x${"zz".repeat(32)}` as const;
    for (const payer of [{ seedPhrase: phrase }, { privateKey: key }]) {
      const error = problemOf({ ...payer, rpcUrls });
      expect(error.message).toMatch(/createPayingFetch: (seedPhrase|privateKey) is not a valid /);
      expect(`${error.stack} ${String(error.cause)}`).not.toMatch(/horse|staple|zzzz|key-1234/);
    }
  });
});
