export { paywall } from "./paywall.ts";
export type { PaywallOptions } from "./paywall-options.ts";
export type { Texts } from "./texts/texts.ts";
