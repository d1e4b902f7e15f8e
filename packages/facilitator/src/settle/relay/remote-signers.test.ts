import { FacilitatorError } from "@coinslot/protocol";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  enginesByDay,
  type SettlingDevnet,
  startSettlingDevnet,
} from "../../testing/settling-devnet.ts";
import type { HashSigner } from "./remote-signer.ts";

describe.each(enginesByDay("sqlite"))("relayers whose keys are elsewhere, on %s", (engine) => {
  let settling: SettlingDevnet;

  beforeEach(async () => {
    settling = await startSettlingDevnet(engine);
  });

  afterEach(() => settling.stop());

  const settle = async (facilitator: Awaited<ReturnType<SettlingDevnet["start"]>>) => {
    const { paymentPayload, paymentRequirements } = await settling.pay();
    return facilitator.settle(paymentPayload, paymentRequirements);
  };

  it("go on beside one that signs with another key, which sends nothing", async () => {
    const { relayer, seller, buyer } = settling.devnet.accounts;
    const wrong: HashSigner = { address: seller.address, sign: ({ hash }) => buyer.sign({ hash }) };
    const well: HashSigner = {
      address: relayer.address,
      sign: ({ hash }) => relayer.sign({ hash }),
    };
    const facilitator = await settling.start({ network: { relayer: [wrong, well] } });
    expect(await settle(facilitator)).toMatchObject({ success: true });
    expect(facilitator.signerFaults()).toMatchObject([{ relayer: seller.address, kind: "wrong" }]);
    expect(await facilitator.metrics.metrics()).toMatch(
      /coinslot_signer_failures_total\{network="eip155:9745",relayer="0x\w{40}",kind="wrong"\} 1/,
    );
    const { client } = settling.devnet;
    expect(await client.getTransactionCount({ address: seller.address })).toBe(0);
    expect(await client.getTransactionCount({ address: relayer.address })).toBe(1);
  });

  it("refuse new payments while none signs, and settle what is queued once one does", async () => {
    const { relayer } = settling.devnet.accounts;
    let isAway = true;
    const sign: HashSigner["sign"] = async ({ hash }) => {
      if (isAway) throw new Error("away");
      return relayer.sign({ hash });
    };
    const facilitator = await settling.start({
      network: { relayer: { address: relayer.address, sign } },
    });
    const queued = settle(facilitator);
    await vi.waitFor(
      () => expect(facilitator.signerFaults()).toMatchObject([{ kind: "failed" }]),
      20_000,
    );
    await expect(settle(facilitator)).rejects.toThrow(FacilitatorError);
    isAway = false;
    expect(await queued).toMatchObject({ success: true });
    expect(facilitator.signerFaults()).toEqual([]);
  });
});
