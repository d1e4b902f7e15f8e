import { describe, expect, it } from "vitest";
import { RpcNotReadyError, RpcUnavailableError, RpcWrongChainError } from "../index.ts";
import { answerError, answerMethod } from "../testing/faults.ts";
import { readHead, rejectionOf, stateOf, usePoolScene } from "../testing/pool-scene.ts";

const open = usePoolScene();
/** Longer than a busy machine takes to look. */
const restMs = 600_000;

describe("the chain id", () => {
  it("is checked by ready() at every endpoint, and one that serves it is enough", async () => {
    const { second, pool, events } = open();
    second.set(answerMethod("eth_chainId", "0x1"));

    await pool.ready();

    expect(stateOf(pool, 1)).toBe("ready");
    expect(stateOf(pool, 2)).toBe("wrong-chain");
    expect(events).toEqual([{ type: "endpoint-wrong-chain", endpoint: 2, chainId: 1 }]);
  });

  it("has ready() reject for good where every endpoint serves another chain", async () => {
    const { first, second, pool } = open();
    first.set(answerMethod("eth_chainId", "0x1"));
    second.set(answerMethod("eth_chainId", "0x1"));

    const error = await rejectionOf(pool.ready());

    expect(error).toBeInstanceOf(RpcNotReadyError);
    expect(error).toMatchObject({
      retryable: false,
      problems: [
        { name: "RpcWrongChainError", endpoint: 1, actualChainId: 1 },
        { name: "RpcWrongChainError", endpoint: 2, actualChainId: 1 },
      ],
    });
  });

  it("has ready() reject for now where the only other endpoint is down", async () => {
    const { first, second, pool } = open();
    first.set(answerMethod("eth_chainId", "0x1"));
    await second.close();

    const error = await rejectionOf(pool.ready());

    expect(error).toMatchObject({
      retryable: true,
      problems: [{ name: "RpcWrongChainError", endpoint: 1 }, { endpoint: 2 }],
    });
  });

  it("has ready() reject for now where no problem is known", () => {
    expect(new RpcNotReadyError(1, [])).toMatchObject({ retryable: true });
  });

  it("is checked before an endpoint's first use, and excludes an endpoint of another chain", async () => {
    const { first, second, pool } = open();
    first.set(answerMethod("eth_chainId", "0x1"));

    expect(await pool.request(readHead)).toMatch(/^0x/);

    expect(first.requests).toEqual([["eth_chainId"]]);
    expect(second.requests).toEqual([["eth_chainId"], ["eth_blockNumber"]]);
  });

  it("is an error that passes when it is wrong everywhere, since each is asked again", async () => {
    const { first, pool } = open({ onlyFirst: true, patienceMs: 5_000 });
    first.set(answerMethod("eth_chainId", "0x1"));

    const error = await rejectionOf(pool.request(readHead));

    expect(error).toMatchObject({ retryable: true });
    expect(error instanceof RpcUnavailableError && error.failures[0]).toBeInstanceOf(
      RpcWrongChainError,
    );
  });

  it("excludes an endpoint that does not return it", async () => {
    const { first, pool } = open({ onlyFirst: true, restMs });
    first.set(answerError(-32601, "method not found"));

    expect(await rejectionOf(pool.ready())).toMatchObject({ problems: [{ kind: "malformed" }] });
    expect(stateOf(pool, 1)).toBe("resting");
  });

  it("is enough at one endpoint to be ready while another is down", async () => {
    const { first, pool } = open({ restMs });
    await first.close();

    await pool.ready();

    expect(stateOf(pool, 2)).toBe("ready");
    // The other endpoint's refusal may come after the sufficient answer.
    await expect.poll(() => stateOf(pool, 1)).toBe("resting");
  });

  it("cannot be checked when all are down, and ready() reports each endpoint", async () => {
    const { first, second, pool } = open();
    await Promise.all([first.close(), second.close()]);

    const error = await rejectionOf(pool.ready());

    expect(error).toMatchObject({ retryable: true, problems: [{ endpoint: 1 }, { endpoint: 2 }] });
  });
});
