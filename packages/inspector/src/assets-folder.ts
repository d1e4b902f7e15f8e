/** Folder of the built page. It is beside `src`, and beside `dist`. */
export const assetsFolder: URL = new URL("../assets/", import.meta.url);
