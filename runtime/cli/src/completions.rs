//! `rtc completions` and `rtc man`: made of the description of the command line in `arguments.rs`, as is the help.

use crate::arguments::Arguments;
use crate::output::{self, out, outln};
use crate::problem::Problem;
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use rtc_source::Code;
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
    rtc completions bash > ~/.local/share/bash-completion/completions/rtc\n  \
    rtc completions zsh > ~/.zfunc/_rtc        (with `fpath+=~/.zfunc` before `compinit` in ~/.zshrc)\n  \
    rtc completions fish > ~/.config/fish/completions/rtc.fish\n  \
    rtc completions powershell >> $PROFILE")]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
    rtc man tune | man -l -\n  \
    rtc man -o ~/.local/share/man/man1         (`man rtc`, `man rtc-tune`)")]
pub(crate) struct ManArguments {
    /// The command, such as `tune` or `cache list` [default: rtc itself]
    #[arg(conflicts_with = "output")]
    pub(crate) command: Vec<String>,
    /// Write the pages of all commands to this directory, created if missing
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

/// Prints the completions of a shell.
pub(crate) fn completions(arguments: &CompletionsArguments) -> Result<(), Problem> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "rtc", &mut text);
    out!("{}", String::from_utf8_lossy(&text))
}

/// Prints a manual page, or writes all of them and prints their paths.
pub(crate) fn man(arguments: &ManArguments) -> Result<(), Problem> {
    // `help` would have a page for each command once more.
    let mut root = Arguments::command().disable_help_subcommand(true);
    root.build();
    if let Some(directory) = &arguments.output {
        output::make_directory(directory)?;
        return with_visible(&root, &mut |command| {
            let path = directory.join(format!("{}.1", name(command)));
            output::write(&path, &page(command)?)?;
            outln!("{}", path.display())
        });
    }
    let mut command = &root;
    for word in &arguments.command {
        let unknown = || {
            let names: Vec<&str> = visible(command).map(Command::get_name).collect();
            Problem::Usage(match names.is_empty() {
                true => format!("`{}` has no command `{word}`", name(command)),
                false => format!("`{}` has no command `{word}`; it has {}", name(command), names.join(", ")),
            })
        };
        command = visible(command).find(|sub| sub.get_name() == word).ok_or_else(unknown)?;
    }
    out!("{}", String::from_utf8_lossy(&page(command)?))
}

/// The name of a command with those above it, such as `rtc-cache-list`.
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or(command.get_name())
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|sub| !sub.is_hide_set())
}

/// Calls `work` for a command and all below it.
fn with_visible(command: &Command, work: &mut dyn FnMut(&Command) -> Result<(), Problem>) -> Result<(), Problem> {
    work(command)?;
    visible(command).try_for_each(|sub| with_visible(sub, work))
}

fn page(command: &Command) -> Result<Vec<u8>, Problem> {
    let mut text = Vec::new();
    let rendered = Man::new(command.clone()).render(&mut text);
    rendered.map_err(|error| Problem::input(Code::IO, format!("cannot make the page: {error}")))?;
    Ok(text)
}
