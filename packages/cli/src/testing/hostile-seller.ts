import type { IncomingMessage, ServerResponse } from "node:http";
import { type Devnet, type Listening, listen } from "@coinslot/devnet";
import { encodePaymentRequired, headerName, plasmaUsdt0 } from "@coinslot/protocol";

/** A seller in a test's own words, and the payments that it got. */
export interface HostileSeller extends Listening {
  payments: string[];
}

/** Offers `GET /weather` by version 2 on a devnet, and answers a payment as the test says. */
export async function startHostileSeller(options: {
  devnet: Devnet;
  /** Price of the n-th offer, from 0 on. Default: 1000 units. */
  price?: (index: number) => number;
  description?: string;
  onPayment(payment: string, response: ServerResponse): void | Promise<void>;
}): Promise<HostileSeller> {
  const { devnet, price = () => 1000, description = "", onPayment } = options;
  const { network, token, accounts } = devnet;
  const { name, version } = plasmaUsdt0;
  const payments: string[] = [];
  let offers = 0;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const payment = request.headers[headerName.paymentSignature.toLowerCase()];
    if (typeof payment === "string") {
      payments.push(payment);
      return onPayment(payment, response);
    }
    if (request.url !== "/weather") {
      response.writeHead(404).end();
      return;
    }
    const accepted = {
      scheme: "exact",
      network,
      amount: `${price(offers)}`,
      asset: token,
      payTo: accounts.seller.address,
      maxTimeoutSeconds: 300,
      extra: { name, version },
    };
    offers += 1;
    const offer = encodePaymentRequired({
      x402Version: 2,
      resource: { url: "http://127.0.0.1/weather", description },
      accepts: [accepted],
    });
    response.writeHead(402, { [headerName.paymentRequired]: offer }).end();
  }

  const listening = await listen((request, response) => {
    answer(request, response).catch((error: unknown) => response.destroy(toError(error)));
  });
  return { ...listening, payments };
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
