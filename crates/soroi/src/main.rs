//! Soroi: a gang scheduler for Kubernetes.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let args = soroi::Args::parse();
    match soroi::run(args, &mut std::io::stdout().lock()) {
        Ok(code) => code,
        // Whoever reads the output has seen enough of it.
        Err(error) if error.downcast_ref().is_some_and(is_closed) => ExitCode::SUCCESS,
        Err(error) => {
            // The chain of causes on one line each; the exit status says that it failed.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn is_closed(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::BrokenPipe
}
