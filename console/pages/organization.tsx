/** Organizations and their plans. The operator, who is a person, changes a plan. */
import { useQuery } from '@tanstack/react-query';
import { api, at } from '../api/client.ts';
import type { CurrentUser, Organization } from '../api/generated.ts';
import { organizationsQuery, sessionQuery, userQuery } from '../api/queries.ts';
import { useForm } from '../forms/use-form.ts';
import { Ago, Card, CopyableId, PageHead } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { SelectField } from '../ui/field.tsx';
import { Form } from '../ui/form.tsx';
import { sizeText } from '../ui/sizes.ts';
import { Loaded } from '../ui/states.tsx';

const plans = [
  { value: 'free', text: 'Free: up to 2 CU, counted projects and branches' },
  { value: 'launch', text: 'Launch: up to 16 CU' },
  { value: 'scale', text: 'Scale: up to 56 CU' },
] as const;

/** The wire has an older word for one of them. */
const planOf = (organization: Organization) => (organization.plan === 'free_v2' ? 'free' : organization.plan);

export function OrganizationPage() {
  const organizations = useQuery(organizationsQuery);
  const session = useQuery(sessionQuery).data;
  const user = useQuery(userQuery(session));
  const isPerson = session?.key?.kind === 'personal';
  return (
    <>
      <title>Organization · Catnap</title>
      <PageHead title="Organization" lead="Owns projects. Its plan limits their sizes." />
      <div className="stack narrow">
        <Loaded query={organizations}>
          {(found) =>
            found.map((organization) => (
              <OrganizationCard key={organization.id} organization={organization} canChange={isPerson} />
            ))
          }
        </Loaded>
        {isPerson && <Loaded query={user}>{(found) => <Limits user={found} />}</Loaded>}
      </div>
    </>
  );
}

interface OrganizationCardProps {
  readonly organization: Organization;
  readonly canChange: boolean;
}

function OrganizationCard({ organization, canChange }: OrganizationCardProps) {
  const current = planOf(organization);
  const form = useForm({
    initial: { plan: current },
    send: (body) => api<object>('PATCH', at`/organizations/${organization.id}`, { body }),
    refresh: [['organizations'], ['user']],
    done: 'The plan is changed.',
    showsFailure: false,
  });
  return (
    <Card title={organization.name}>
      <div className="stack">
        <dl className="facts">
          <dt>Id</dt>
          <dd>
            <CopyableId id={organization.id} label="the organization id" />
          </dd>
          <dt>Created</dt>
          <dd>
            <Ago at={organization.created_at} />
          </dd>
        </dl>
        <Form form={form} className="stack">
          <SelectField
            label="Plan"
            hint="New limits apply at once to what is created, and to a compute at its next start."
            {...form.field('plan')}
            choices={plans}
            disabled={!canChange}
          />
          {canChange && (
            <Button type="submit" busy={form.isBusy} disabled={form.values.plan === current}>
              Change plan
            </Button>
          )}
        </Form>
      </div>
    </Card>
  );
}

/** What stands for "no limit" on the wire. */
const unlimited = 1_000_000;

function Limits({ user }: { readonly user: CurrentUser }) {
  const limit = (value: number) => (value >= unlimited ? 'no limit' : String(value));
  return (
    <Card title="You">
      <dl className="facts">
        <dt>Name</dt>
        <dd>{user.name}</dd>
        <dt>Address</dt>
        <dd>{user.email}</dd>
        <dt>Projects</dt>
        <dd>{limit(user.projects_limit)}</dd>
        <dt>Branches of a project</dt>
        <dd>{limit(user.branches_limit)}</dd>
        <dt>Largest compute</dt>
        <dd>{user.max_autoscaling_limit === 0 ? 'no limit' : sizeText(user.max_autoscaling_limit)}</dd>
      </dl>
    </Card>
  );
}
