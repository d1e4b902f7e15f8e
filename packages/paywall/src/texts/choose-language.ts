import { chinese } from "./chinese.ts";
import { english } from "./english.ts";
import { german } from "./german.ts";
import { spanish } from "./spanish.ts";
import type { Texts } from "./texts.ts";

/** Languages with texts, by the first part of their tag. */
export const languages = { en: english, de: german, zh: chinese, es: spanish } as const;

/** A language with texts. */
export type Language = keyof typeof languages;

/** Returns whether a tag names a language with texts. */
function isLanguage(tag: string): tag is Language {
  return Object.hasOwn(languages, tag);
}

/**
 * Chooses the language of a page by `Accept-Language` (RFC 9110, 12.5.4): the first of the highest
 * quality that has texts, else English.
 */
export function chooseLanguage(accepted: string): { language: Language; texts: Texts } {
  let language: Language = "en";
  let best = 0;
  for (const part of accepted.slice(0, 512).split(",")) {
    const [tag = "", ...parameters] = part.split(";");
    const primary = tag.trim().split("-", 1)[0]?.toLowerCase() ?? "";
    const quality = /^\s*q\s*=\s*([01](?:\.[0-9]{0,3})?)\s*$/i.exec(parameters.join(";"))?.[1];
    const weight = Number(quality ?? 1);
    if (!isLanguage(primary) || weight <= best) continue;
    language = primary;
    best = weight;
  }
  return { language, texts: languages[language] };
}
