/** Longer ones would swell every offer, which travels in a header. */
const maxPublicUrl = 1024;

/**
 * Reads the address under which buyers reach an application: scheme, host, and a path that a proxy
 * may cut.
 *
 * @param name of the setting, for problems
 * @returns it without a slash at its end; `undefined` when it is not set, or reported as unusable
 */
export function readPublicUrl(
  value: unknown,
  { name, tell }: { name: string; tell: (problem: string) => void },
): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== "string" || value.length > maxPublicUrl || !isPlainHttp(value)) {
    tell(
      `${name} must be an address such as https://api.example.com, without user, query or fragment`,
    );
    return undefined;
  }
  return new URL(value).href.replace(/\/+$/, "");
}

function isPlainHttp(text: string): boolean {
  if (!/^https?:\/\/[^/]/i.test(text) || /[?#\\\s]/.test(text) || !URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return username === "" && password === "";
}
