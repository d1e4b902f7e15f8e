import type { PageDemand, Paywall } from "@coinslot/protocol";
import { payableWays } from "./payable-ways.ts";
import { type PaywallOptions, readPaywallOptions } from "./paywall-options.ts";
import { readAssets } from "./read-assets.ts";
import { chooseLanguage } from "./texts/choose-language.ts";
import { writeDocument } from "./write-document.ts";

/**
 * A page with which a person pays for a URL by a wallet in the browser. It is for the option
 * `paywall` of `paymentMiddleware`, and loads nothing from elsewhere.
 *
 * @example
 * ```ts
 * const gate = paymentMiddleware(routes, facilitator, {
 *   paywall: paywall({ name: "Weather Ltd", logo: "/logo.svg", accent: "#0a7447" }),
 * });
 * ```
 *
 * @throws ConfigurationError with all problems of the options
 */
export function paywall(options: PaywallOptions = {}): Paywall {
  const settings = readPaywallOptions(options);
  const assets = readAssets();
  return {
    writePage(demand: PageDemand): string {
      const { language, texts } = chooseLanguage(settings.language ?? demand.languages);
      const data = {
        method: demand.method,
        form: demand.form,
        accept: demand.accept,
        ways: payableWays(demand.accepts, settings),
        time: Date.now(),
        language,
        texts: { ...texts, ...settings.texts },
      };
      return writeDocument({ demand, data, settings, assets });
    },
  };
}
