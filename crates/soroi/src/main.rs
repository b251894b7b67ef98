//! Soroi: a gang scheduler for Kubernetes.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let args = soroi::Args::parse();
    match soroi::run(args, &mut std::io::stdout().lock()) {
        Ok(code) => code,
        Err(error) => {
            // The chain of causes on one line each; the exit status says that it failed.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
