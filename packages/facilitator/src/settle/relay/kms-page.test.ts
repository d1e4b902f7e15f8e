import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { listen } from "@coinslot/devnet";
import type { Hex } from "@coinslot/protocol";
import { secp256k1 } from "@noble/curves/secp256k1";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, it, onTestFinished } from "vitest";
import * as z from "zod";
import type { RelayerTransaction } from "./relayer-signer.ts";
import { createRemoteSigner, type HashSigner } from "./remote-signer.ts";

const page = join(import.meta.dirname, "../../../../../docs/operating.md");
const key = generatePrivateKey();
const account = privateKeyToAccount(key);
const requestSchema = z.object({ digest: z.object({ sha256: z.string() }) });

/** Signs as Google's KMS does: DER in base64, with a low s and a high one in turns. */
async function startKms() {
  let count = 0;
  const listening = await listen(async (request, response) => {
    if (
      request.headers.authorization !== "Bearer a token" ||
      request.url !== "/key:asymmetricSign"
    ) {
      return void response.writeHead(403).end();
    }
    const { digest } = requestSchema.parse(await json(request));
    const { r, s } = secp256k1.sign(Buffer.from(digest.sha256, "base64"), key.slice(2));
    count += 1;
    const either = count % 2 === 0 ? s : secp256k1.CURVE.n - s;
    const der = new secp256k1.Signature(r, either).toDERRawBytes();
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify({ signature: Buffer.from(der).toString("base64") }));
  });
  onTestFinished(() => listening.close());
  return listening.url;
}

/** The relayer of the page's program. */
async function readRelayer(kms: object): Promise<HashSigner> {
  const text = await readFile(page, "utf8");
  const [, program] =
    /## Keys elsewhere[\s\S]*?```ts\nimport [^\n]*\n([\s\S]*?)```/.exec(text) ?? [];
  const folder = await mkdtemp(join(tmpdir(), "coinslot-page-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, "page.ts");
  await writeFile(
    file,
    `export const run = (createFacilitator, kms) => {${program}return facilitator;}`,
  );
  const { run } = await import(file);
  return run(
    (options: { networks: [{ relayer: HashSigner }] }) => options.networks[0].relayer,
    kms,
  );
}

it("the page's signer for a cloud KMS signs what viem signs, with a low s and the right parity", async () => {
  const keyVersion = `${await startKms()}/key`;
  const kms = { address: account.address, keyVersion, readToken: async () => "a token" };
  const signer = createRemoteSigner(await readRelayer(kms));
  for (let nonce = 0; nonce < 8; nonce += 1) {
    const to: Hex = account.address;
    const transaction: RelayerTransaction = {
      type: "eip1559",
      chainId: 9745,
      nonce,
      to,
      data: "0x",
      gas: 21_000n,
      maxFeePerGas: 2n,
      maxPriorityFeePerGas: 1n,
    };
    expect(await signer.signTransaction(transaction)).toBe(
      await account.signTransaction(transaction),
    );
  }
  const denied = createRemoteSigner(
    await readRelayer({ ...kms, readToken: async () => "another token" }),
  );
  const failure = await denied
    .signTransaction({
      type: "legacy",
      chainId: 1,
      nonce: 0,
      to: account.address,
      data: "0x",
      gas: 1n,
      gasPrice: 1n,
    })
    .catch((error: unknown) => error);
  expect(failure).toMatchObject({ kind: "failed", cause: { message: "The KMS answered 403" } });
});
