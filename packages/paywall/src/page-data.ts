import type { PageForm, PaymentRequirements } from "@coinslot/protocol";
import type { Language } from "./texts/choose-language.ts";
import type { Texts } from "./texts/texts.ts";

/** Facts for the script of the page, as JSON in the page. */
export interface PageData {
  method: string;
  form: PageForm;
  /** `Accept` of the request. */
  accept: string;
  ways: readonly PayableWay[];
  /** Unix milliseconds of the seller's clock, which judges a payment's times. */
  time: number;
  language: Language;
  texts: Texts;
}

/** A way to pay that a wallet in a browser can sign. */
export interface PayableWay {
  /** As offered: a payment repeats it. */
  accepted: PaymentRequirements;
  /** Price for people, such as `0.001 USDT0`. */
  price: string;
  symbol: string;
  /** `undefined`: a balance cannot be written in whole tokens. */
  decimals?: number | undefined;
  chainId: number;
  networkName: string;
  /** Facts for a wallet that does not know the chain (EIP-3085). */
  chain?: WalletChain | undefined;
  /** URL of a transaction, with `{hash}`. */
  explorer?: string | undefined;
}

/** A chain as a wallet takes it (EIP-3085). */
export interface WalletChain {
  chainName: string;
  nativeCurrency: { name: string; symbol: string; decimals: number };
  rpcUrls: readonly string[];
  blockExplorerUrls?: readonly string[];
}
