/** Records a finding: a server was found dead, or the kernel killed processes of it. A start is another operation. */
import { done, type Job, nothingToUndo, type Step } from './step.ts';

const record: Step = async ({ operation }) => {
  const { finding } = operation.state;
  return done(null, typeof finding === 'string' ? finding : null);
};

export const checkAvailability: Job = { steps: { record }, giveUp: nothingToUndo };
