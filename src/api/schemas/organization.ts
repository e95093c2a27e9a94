/** Organizations. */
import { Type } from 'typebox';
import { planNames } from '../../lib/config.ts';
import { closed, idOf, ref, time } from './common.ts';

export const Organization = Type.Object(
  {
    id: idOf('organization'),
    name: Type.String({ description: 'Name.' }),
    handle: Type.String({ description: 'Short name.' }),
    plan: Type.String({ description: 'Plan that its limits come from.' }),
    created_at: time('When it was made.'),
    managed_by: Type.String({ description: 'What manages it.' }),
    updated_at: time('When it last changed.'),
  },
  { $id: 'Organization', description: 'Owns projects; users are its members.' },
);

export const OrganizationUpdateBody = Type.Object(
  {
    plan: Type.Enum(planNames, {
      description: 'Its limits apply to new things at once, to a compute at its next start.',
    }),
  },
  closed,
);

export const OrganizationsReply = Type.Object({ organizations: Type.Array(ref(Organization)) });
export const OrganizationParams = Type.Object({ org_id: idOf('organization') });
