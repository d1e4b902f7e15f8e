/**
 * A receiver's URL as it is shown. User, query and fragment may be secrets, and so may a path: that
 * of a chat's hook is. Of a URL that was shown already, the same.
 */
export function shownUrl(url: string): string {
  if (!URL.canParse(url)) return "";
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname === "/" ? "" : "/…"}`;
}
