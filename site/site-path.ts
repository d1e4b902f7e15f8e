import { publicationOrPlaceholder } from "../scripts/publication.mjs";

/** The path that the site is served below, from the publication's homepage: `/` or `/coinslot/`. */
export function sitePath(): string {
  const { pathname } = new URL(publicationOrPlaceholder().homepage);
  return pathname.endsWith("/") ? pathname : `${pathname}/`;
}
