import { type BudgetState, emptyBudget } from "./budget-state.ts";

/** Storage of a budget's state. */
export interface BudgetStore {
  /**
   * Changes the state under mutual exclusion. When the change returns the same state, nothing is
   * written.
   *
   * @throws PaymentError when the state cannot be read or kept; then it is unchanged.
   */
  update<T>(change: (state: BudgetState) => { state: BudgetState; result: T }): Promise<T>;
}

/** Keeps a budget in memory, for one `createPayingFetch` and its lifetime. */
export function createMemoryStore(): BudgetStore {
  let current = emptyBudget;
  return {
    // No await inside, so calls cannot interleave.
    async update(change) {
      const { state, result } = change(current);
      current = state;
      return result;
    },
  };
}
