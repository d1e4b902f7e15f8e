// Run by unpack-chromium.ts as a process of its own, since the package reads the environment. It
// unpacks into the folder for temporary files. It brings shared libraries only where it believes to
// be in Amazon's cloud.
import chromium from "@sparticuz/chromium";

console.log(await chromium.executablePath());
