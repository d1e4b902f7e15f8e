// Screenshots of the pages, with real payments on a local chain.
//     npm run pictures [-- folder]   pages of the console into pictures/
//     npm run pictures -- --guide    those of the documentation into docs/pictures/
// Each page of the console is pictured light and dark, in three widths.
import { parseArgs } from "node:util";
import { openBrowser } from "@coinslot/pages/testing";
import { pictureConsole } from "./pictures/console.ts";
import { pictureGuide } from "./pictures/guide.ts";

const { values, positionals } = parseArgs({
  options: { guide: { type: "boolean", default: false } },
  allowPositionals: true,
});
const [folder = values.guide ? "docs/pictures" : "pictures"] = positionals;
const browser = await openBrowser();
try {
  const files = await (values.guide ? pictureGuide : pictureConsole)(browser, folder);
  console.log(`${files.length} pictures in ${folder}/`);
} finally {
  await browser.close();
}
