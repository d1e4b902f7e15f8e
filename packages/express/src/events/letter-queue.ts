/** Letters that wait, by sender. Senders take turns, and none fills the queue against others. */
export interface LetterQueue<Letter> {
  /** Appends a letter. */
  add(letter: Letter): void;
  /** Removes the first letter that may go, of the sender whose last turn is the longest ago. */
  take(mayGo: (letter: Letter) => boolean): Letter | undefined;
  /** Removes the oldest letters of those senders with the most, until the bound is kept. */
  trim(maxLetters: number): Letter[];
  /** Removes all letters that match. */
  remove(matches: (letter: Letter) => boolean): Letter[];
}

/** Creates a queue. */
export function createLetterQueue<Letter extends { sender: string }>(): LetterQueue<Letter> {
  // In the order of turns.
  const queues = new Map<string, Letter[]>();
  let size = 0;

  function removeAt(letters: Letter[], index: number): Letter[] {
    const removed = letters.splice(index, 1);
    size -= removed.length;
    return removed;
  }

  /** A sender's queue, if it is not empty, behind all others. */
  function putLast(sender: string, letters: Letter[]): void {
    queues.delete(sender);
    if (letters.length > 0) queues.set(sender, letters);
  }

  return {
    add(letter) {
      const letters = queues.get(letter.sender);
      if (letters) letters.push(letter);
      else queues.set(letter.sender, [letter]);
      size += 1;
    },
    take(mayGo) {
      for (const [sender, letters] of queues) {
        const index = letters.findIndex(mayGo);
        if (index < 0) continue;
        const [letter] = removeAt(letters, index);
        putLast(sender, letters);
        return letter;
      }
      return undefined;
    },
    trim(maxLetters) {
      const removed: Letter[] = [];
      while (size > maxLetters) {
        let [longest = []] = queues.values();
        for (const letters of queues.values()) {
          if (letters.length > longest.length) longest = letters;
        }
        const [oldest] = removeAt(longest, 0);
        if (oldest === undefined) break;
        removed.push(oldest);
        if (longest.length === 0) queues.delete(oldest.sender);
      }
      return removed;
    },
    remove(matches) {
      const removed: Letter[] = [];
      for (const [sender, letters] of queues) {
        const kept = letters.filter((letter) => !matches(letter));
        if (kept.length === letters.length) continue;
        removed.push(...letters.filter(matches));
        if (kept.length > 0) queues.set(sender, kept);
        else queues.delete(sender);
      }
      size -= removed.length;
      return removed;
    },
  };
}
