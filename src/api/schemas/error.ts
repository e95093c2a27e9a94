/** The one shape of every error reply. */
import { Type } from 'typebox';
import { ref } from './common.ts';

export const GeneralError = Type.Object(
  {
    request_id: Type.String({ description: 'Also in the x-request-id header and in the log.' }),
    code: Type.String({ description: 'A fixed word for a few errors, else empty.' }),
    message: Type.String({ description: 'What is wrong, for a person: lower case, details as key:"value".' }),
  },
  { $id: 'GeneralError', description: 'Sent with every status of 400 and above.' },
);

/** For the `response` part of a route: every status that is not listed is an error. */
export const errorReply = { default: ref(GeneralError) };
