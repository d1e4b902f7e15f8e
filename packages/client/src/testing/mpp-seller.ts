import type { ServerResponse } from "node:http";
import type { Devnet } from "@coinslot/devnet";
import {
  type Challenge,
  type ChargeRequest,
  type Credential,
  decodeCredential,
  type ExactEvmPayload,
  encodeChargeRequest,
  encodePaymentReceipt,
  evmCharge,
  formatChallenge,
  type Hex,
  headerName,
  isPaymentScheme,
  type PaymentReceipt,
  parseAuthorization,
  plasma,
  plasmaUsdt0,
  readAuthorizationPayload,
} from "@coinslot/protocol";
import { executeAuthorization } from "./execute-payment.ts";
import { type Listening, listen, type ReceivedRequest } from "./listen.ts";
import { payTo } from "./seller.ts";

/** A request that came with a credential. */
export interface CredentialRequest {
  request: ReceivedRequest;
  header: string;
  credential: Credential;
  payload: ExactEvmPayload;
}

/** A seller by MPP whose every step a test may replace. */
export interface MppSeller extends Listening {
  unpaid: ReceivedRequest[];
  paid: CredentialRequest[];
}

/** A charge of 0.001 USDT0 on Plasma by default. */
export function chargeOf(change: Record<string, unknown> = {}): ChargeRequest {
  const { methodDetails, ...rest } = change;
  return {
    amount: "1000",
    currency: plasmaUsdt0.address,
    recipient: payTo,
    ...rest,
    methodDetails: {
      chainId: 9745,
      credentialTypes: ["authorization"],
      decimals: 6,
      ...(typeof methodDetails === "object" ? methodDetails : {}),
    },
  };
}

/** A challenge for a charge, good for five minutes. */
export function challengeOf(
  change: Partial<Challenge> = {},
  charge: ChargeRequest = chargeOf(),
): Challenge {
  return {
    id: crypto.randomUUID(),
    realm: "127.0.0.1",
    ...evmCharge,
    request: encodeChargeRequest(charge),
    expires: new Date(Date.now() + 300_000).toISOString(),
    ...change,
  };
}

/** Starts a seller that challenges, and executes every payment on the devnet. */
export async function startMppSeller(options: {
  devnet: Devnet;
  /** The lines of `WWW-Authenticate` for the n-th unpaid request. */
  challenge?: (count: number) => string | readonly string[];
  /** Further headers of the 402. */
  headers?: Record<string, string>;
  /** Resolves to whether it answers the paid request itself. */
  onPaid?: (
    paid: CredentialRequest,
    response: ServerResponse,
    count: number,
  ) => boolean | Promise<boolean>;
}): Promise<MppSeller> {
  const { devnet, challenge = () => formatChallenge(challengeOf()), onPaid } = options;
  const unpaid: ReceivedRequest[] = [];
  const paid: CredentialRequest[] = [];
  const listening = await listen(async (request, response) => {
    const credential = readPaid(request);
    if (credential === undefined) {
      unpaid.push(request);
      const lines = challenge(unpaid.length);
      const authenticate = typeof lines === "string" ? [lines] : [...lines];
      response.writeHead(402, { ...options.headers, [headerName.authenticate]: authenticate });
      response.end("{}");
      return;
    }
    paid.push(credential);
    if (await onPaid?.(credential, response, paid.length)) return;
    sellByMpp(response, credential, { reference: await execute(devnet, credential) });
  });
  return { ...listening, unpaid, paid };
}

/** Moves the tokens of a credential; resolves to the transaction's hash. */
export function execute(devnet: Devnet, { payload }: CredentialRequest): Promise<Hex> {
  const authorization = parseAuthorization(payload.authorization);
  return executeAuthorization(devnet, { authorization, signature: payload.signature });
}

/** Answers with a receipt, as true as its changes. */
export function sellByMpp(
  response: ServerResponse,
  paid: CredentialRequest,
  change: Partial<PaymentReceipt>,
): void {
  response.writeHead(200, { [headerName.paymentReceipt]: receiptFor(paid, change) });
  response.end(JSON.stringify({ forecast: "sun" }));
}

/** The value of a `Payment-Receipt`. */
export function receiptFor(
  { credential }: CredentialRequest,
  change: Partial<PaymentReceipt>,
): string {
  return encodePaymentReceipt({
    status: "success",
    method: "evm",
    timestamp: new Date().toISOString(),
    reference: `0x${"ab".repeat(32)}`,
    challengeId: credential.challenge.id,
    chainId: Number(plasma.split(":")[1]),
    ...change,
  });
}

function readPaid(request: ReceivedRequest): CredentialRequest | undefined {
  const names = ["authorization", "payment-authorization"];
  const header = names
    .map((name) => String(request.headers[name] ?? ""))
    .find((value) => isPaymentScheme(value));
  if (header === undefined) return undefined;
  const credential = decodeCredential(header);
  const payload = readAuthorizationPayload(credential);
  if (payload === undefined) throw new Error("No authorization");
  return { request, header, credential, payload };
}
