/** Puts on record that a server was found dead; the start that follows it is an operation of its own. */
import { done, type Job, nothingToUndo, type Step } from './step.ts';

const record: Step = async ({ operation }) => {
  const { finding } = operation.state;
  return done(null, typeof finding === 'string' ? finding : null);
};

export const checkAvailability: Job = { steps: { record }, giveUp: nothingToUndo };
