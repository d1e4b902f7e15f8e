import { startDevnet } from "@coinslot/devnet";
import { x402Facilitator } from "@x402/core/facilitator";
import { toFacilitatorEvmSigner } from "@x402/evm";
import { ExactEvmScheme } from "@x402/evm/exact/facilitator";
import { createWalletClient, http, nonceManager, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { createRpcPool } from "../packages/chain/src/index.ts";
import { createSimulator } from "../packages/facilitator/src/simulation/simulator.ts";
import { signPayment } from "../packages/facilitator/src/testing/payments.ts";
import { createVerifier } from "../packages/facilitator/src/verify/verifier.ts";

const d = await startDevnet();
try {
  await d.mint({ to: d.accounts.buyer.address, amount: 10n ** 12n });
  const rpc = createRpcPool({ chainId: d.chainId, rpcUrls: [d.rpcUrl] });
  const now = Date.now;
  const simulator = createSimulator({ rpc, now });
  const v = createVerifier({
    networks: new Map([[d.network, { rpc, simulator }]]),
    now,
    logger: console,
  });
  const account = privateKeyToAccount(d.accounts.relayer.privateKey, { nonceManager });
  const client = createWalletClient({
    account,
    chain: d.client.chain,
    transport: http(d.rpcUrl),
  }).extend(publicActions);
  const signer = toFacilitatorEvmSigner({ ...client, address: account.address } as never);
  const ref = new x402Facilitator().register(d.network as never, new ExactEvmScheme(signer));
  const N = 128,
    R = 4;
  const ps = await Promise.all(
    Array.from({ length: N * R }, () =>
      signPayment({
        network: d.network,
        asset: d.token,
        signer: d.accounts.buyer,
        payTo: d.accounts.seller.address,
      }),
    ),
  );
  async function conc(name: string, verify: (p: any) => Promise<any>) {
    const t0 = performance.now();
    let n = 0;
    for (let k = 0; k < R; k++) {
      const out = await Promise.all(ps.slice(k * N, (k + 1) * N).map(verify));
      n += out.filter((o) => o.isValid).length;
    }
    const s = (n / (performance.now() - t0)) * 1000;
    return s;
  }
  async function one(name: string, verify: (p: any) => Promise<any>) {
    const t0 = performance.now();
    for (let k = 0; k < 100; k++) {
      const o = await verify(ps[k]);
      if (!o.isValid) throw new Error(JSON.stringify(o));
    }
    return (performance.now() - t0) / 100;
  }
  const ours = (p: any) => v.verify(p.paymentPayload, p.paymentRequirements);
  const theirs = (p: any) => ref.verify(p.paymentPayload, p.paymentRequirements);
  await conc("", ours);
  await conc("", theirs);
  for (let r = 0; r < 5; r++) {
    const a = await conc("", theirs),
      b = await conc("", ours),
      c = await one("", theirs),
      e = await one("", ours);
    console.log(
      `128: ref ${a.toFixed(0)}/s ours ${b.toFixed(0)}/s  x${(b / a).toFixed(1)} | one: ref ${c.toFixed(2)}ms ours ${e.toFixed(2)}ms x${(e / c).toFixed(2)}`,
    );
  }
  rpc.close();
} finally {
  await d.stop();
}
