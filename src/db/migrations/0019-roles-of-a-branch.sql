-- Every login asks whether a change of its role is pending, and every start what is pending on its branch, dropped rows
-- included: the indexes of names have none of those, and both looked through the rows of all branches.
create index roles_of_branch on roles (branch_id);
create index databases_of_branch on databases (branch_id);
