/** `catnap plan`: shows or changes the plan of an organization. */
import type { Command } from 'commander';
import { CliFailure } from '../kit/failure.ts';
import type { GetCurrentUserOrganizationsReply, Organization, UpdateOrganizationReply } from '../kit/generated.ts';
import type { RunCommand, Session } from '../kit/session.ts';

interface Choice {
  readonly org?: string;
}

const orgOption = ['--org <id>', 'which organization, when there are several'] as const;
const columns = { id: 'id', name: 'name', plan: 'plan' };

export function addPlan(program: Command, run: RunCommand): void {
  const plan = program.command('plan').description('the plan of an organization: show or set it');
  plan
    .command('show')
    .description('list organizations with their plans')
    .action(() => run(showPlans));
  plan
    .command('set')
    .description('change the plan; a compute that runs gets the new limits at its next start')
    .argument('<plan>', 'free, launch or scale')
    .option(...orgOption)
    .action((name: string, choice: Choice) => run((session) => setPlan(session, name, choice)));
}

async function showPlans({ client, writer }: Session): Promise<undefined> {
  writer.list(await organizations(client), columns, 'There are no organizations.');
}

async function organizations(client: Session['client']): Promise<readonly Organization[]> {
  return (await client.get<GetCurrentUserOrganizationsReply>('/users/me/organizations')).organizations;
}

async function setPlan({ client, writer }: Session, plan: string, choice: Choice): Promise<undefined> {
  const [first, ...others] = await organizations(client);
  if (choice.org === undefined && others.length > 0)
    throw new CliFailure('there are several organizations: add --org <id>');
  const id = choice.org ?? first?.id;
  if (id === undefined) throw new CliFailure('the key reaches no organization');
  writer.record(
    await client.patch<UpdateOrganizationReply>(`/organizations/${encodeURIComponent(id)}`, { plan }),
    columns,
  );
}
