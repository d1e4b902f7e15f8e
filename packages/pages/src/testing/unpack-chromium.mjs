// Run by unpack-chromium.ts as a process of its own: the package unpacks into the folder for
// temporary files, and brings shared libraries only where it believes to be in Amazon's cloud. Both
// are read from the environment.
import chromium from "@sparticuz/chromium";

console.log(await chromium.executablePath());
