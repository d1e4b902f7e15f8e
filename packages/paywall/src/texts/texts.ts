/** Texts of the page. `{…}` is replaced: a seller's own text keeps these marks. */
export interface Texts {
  /** Title where the route has no description. */
  title: string;
  /** After the price: `on {network}`. */
  network: string;
  /** Ways to pay, where there are several. */
  ways: string;
  details: string;
  recipient: string;
  token: string;
  address: string;
  /** Before the wallets. */
  choose: string;
  /** On the button of a wallet: `Pay {price} with {wallet}`. */
  pay: string;
  /** The other ways: a phone, a command. */
  otherwise: string;
  phone: string;
  command: string;
  formLost: string;
  transfer: string;
  noWallet: string;
  connecting: string;
  switching: string;
  readingBalance: string;
  balance: string;
  tooLittle: string;
  signing: string;
  sending: string;
  waiting: string;
  cancel: string;
  again: string;
  resume: string;
  anew: string;
  check: string;
  declined: string;
  wrongChain: string;
  walletFailed: string;
  refused: string;
  badSignature: string;
  termsChanged: string;
  noAnswer: string;
  pending: string;
  failed: string;
  charged: string;
  refunded: string;
  expired: string;
  moved: string;
  open: string;
  nothingMoved: string;
  mayMove: string;
  paid: string;
  paidBefore: string;
  showAgain: string;
  buyAgain: string;
  receipt: string;
  save: string;
  opening: string;
}
