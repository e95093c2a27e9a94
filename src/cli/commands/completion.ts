/** `catnap completion`: a script that teaches a shell to complete the words of `catnap`. */
import { Argument, type Command } from 'commander';
import { completions } from '../kit/complete.ts';
import type { RunCommand } from '../kit/session.ts';

/** What the scripts call; not for people. */
const asked = '__complete';

const scripts = {
  bash: `# To use it: source <(catnap completion bash)
_catnap() {
  local IFS=$'\\n'
  COMPREPLY=($(catnap ${asked} -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _catnap catnap
`,
  zsh: `#compdef catnap
# To use it: source <(catnap completion zsh), behind compinit
_catnap() {
  local -a found
  found=("\${(@f)$(catnap ${asked} -- "\${words[@]:1:$((CURRENT - 1))}" 2>/dev/null)}")
  [[ -n "\${found[*]}" ]] && compadd -- "\${found[@]}" || _files
}
compdef _catnap catnap
`,
  fish: `# To use it: catnap completion fish | source
function __catnap_complete
    set -l words (commandline -opc) (commandline -ct)
    catnap ${asked} -- $words[2..-1] 2>/dev/null
end
complete -c catnap -f -a '(__catnap_complete)'
`,
};

export function addCompletion(program: Command, run: RunCommand): void {
  program
    .command('completion')
    .description('print a script that lets a shell complete commands, options and names')
    .addArgument(new Argument('<shell>').choices(Object.keys(scripts)))
    .action((shell: keyof typeof scripts) =>
      run(async ({ parts }) => {
        parts.stdout.write(scripts[shell]);
        return undefined;
      }),
    );
  program
    .command(asked, { hidden: true })
    .argument('[words...]')
    .action((words: string[]) =>
      run(async (session) => {
        for (const word of await completions(program, words, session)) session.parts.stdout.write(`${word}\n`);
        return undefined;
      }),
    );
}
