/** Rows of `stack_teams` and `stack_team_members`: a project that a person owns belongs to a team of that person. */
import type { Sql } from '../../db/client.ts';

export interface TeamRow {
  readonly id: string;
  readonly projectId: string;
  readonly displayName: string;
  readonly createdAt: Date;
}

export async function insertTeam(
  sql: Sql,
  team: Pick<TeamRow, 'id' | 'projectId' | 'displayName'>,
  userId: string,
): Promise<void> {
  await sql`insert into stack_teams ${sql(team, 'id', 'projectId', 'displayName')}`;
  await sql`insert into stack_team_members ${sql({ teamId: team.id, userId })}`;
}

export async function selectTeamsOfUser(sql: Sql, userId: string): Promise<TeamRow[]> {
  return sql<TeamRow[]>`
    select t.* from stack_teams t join stack_team_members m on m.team_id = t.id
    where m.user_id = ${userId} order by t.created_at, t.id`;
}
