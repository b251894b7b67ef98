//! The custom resource definitions, for `kubectl apply`.

use std::io::Write;
use std::process::ExitCode;

pub(crate) fn run(out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    out.write_all(soroi_api::crds::yaml()?.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
