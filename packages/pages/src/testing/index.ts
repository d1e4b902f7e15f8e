export { addWallet, type TestWallet, type WalletOptions } from "./add-wallet.ts";
export { findFaults } from "./find-faults.ts";
export { openBrowser } from "./open-browser.ts";
export { takePictures } from "./take-pictures.ts";
