/** Folder of the documents' pictures, in the repository and on the site. */
export const picturesFolder = "docs/pictures";

/** A picture of a document, for light and dark pages. */
export interface Picture {
  /** Paths, relative to the document. */
  light: string;
  dark: string;
  alt: string;
}

/** As the documents write it, for forges that choose by the reader's colours. */
const form =
  /^<picture>\n *<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)">\n *<img src="([^"]+)" width="\d+" alt="([^"]+)">\n<\/picture>$/gm;

/** The pictures of a document. */
export function picturesIn(markdown: string): Picture[] {
  return [...markdown.matchAll(form)].map(([, dark = "", light = "", alt = ""]) => ({
    ...{ light, dark, alt },
  }));
}

/**
 * Writes pictures as the site shows them: two images, of which a style hides the one for the other
 * colours, also from a screen reader.
 */
export function replacePictures(markdown: string): string {
  return markdown.replace(
    form,
    (_, dark, light, alt) => `![${alt}](${light}){.of-light} ![${alt}](${dark}){.of-dark}`,
  );
}
