//! The user's choice of the device for a pass.

use super::kind::EngineKind;
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::plan::devices::on_each;
use nysketch_cuda::Device;
use std::sync::Arc;

/// Time on the CPU above which starting a GPU pays, in seconds. Opening a GPU takes a second, and
/// compiling for it a few seconds.
const MIN_SECONDS: f64 = 10.0;
/// Approximate operations per second of one vectorised thread.
const OPERATIONS: f64 = 2e10;
/// Cost of a kernel value, in operations.
const PER_KERNEL_VALUE: f64 = 10.0;

/// The device for a pass. All devices give the same sums.
///
/// ```
/// use nysketch_core::DeviceChoice;
/// assert_eq!(DeviceChoice::from_name("cuda:1")?, DeviceChoice::Cuda(Some(1)));
/// assert!(DeviceChoice::from_name("gpu").is_err());
/// # Ok::<(), nysketch_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceChoice {
    /// The GPU, if there is one and the work is large enough to justify starting it.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// The GPU with this number, from 0, or all GPUs.
    Cuda(Option<usize>),
}

impl DeviceChoice {
    /// Parses `auto`, `cpu`, `cuda` or `cuda:N`.
    pub fn from_name(name: &str) -> Result<Self> {
        let known = match name {
            "auto" => Some(DeviceChoice::Auto),
            "cpu" => Some(DeviceChoice::Cpu),
            "cuda" => Some(DeviceChoice::Cuda(None)),
            other => other
                .strip_prefix("cuda:")
                .and_then(|n| n.parse().ok())
                .map(|n| DeviceChoice::Cuda(Some(n))),
        };
        known.ok_or_else(|| {
            Error::parameter("`device`", "auto, cpu, cuda or cuda:N, N counting from 0", name)
        })
    }

    /// Chooses the engine for `rows` rows (if known) read by `threads` threads. `divided` means
    /// that rows are divided among many sums, by group or by fold. These sums change with every
    /// block of rows, so `Auto` uses the CPU for them. A GPU that was requested by name and cannot
    /// be used is an error. If `Auto` cannot use a GPU, it falls back to the CPU and the returned
    /// text gives the reason.
    pub fn engine(
        self,
        plan: &Arc<Plan>,
        rows: Option<u64>,
        threads: usize,
        divided: bool,
    ) -> Result<(EngineKind, Option<String>)> {
        let operations = rows.map_or(0.0, |rows| rows as f64 * operations(plan));
        let pays = !divided && plan.people().is_none();
        let (engine, why_not) =
            self.start(if pays { operations } else { 0.0 }, threads, |ordinal| {
                let engine = EngineKind::Cuda(ordinal);
                engine.prepare(plan).map(|()| engine)
            })?;
        Ok((engine.unwrap_or(EngineKind::Cpu), why_not))
    }

    /// Whether the CPU may take over after this error: a GPU failed that was not requested by name.
    pub fn excuses(self, error: &Error) -> bool {
        self == DeviceChoice::Auto && error.is_of_device()
    }

    /// Fails if a GPU was requested by name and cannot be used.
    pub fn check(self) -> Result<()> {
        match self {
            DeviceChoice::Cuda(ordinal) => {
                on_each(ordinal, |ordinal| Ok(Device::open(ordinal)?)).map(drop)
            }
            DeviceChoice::Auto | DeviceChoice::Cpu => Ok(()),
        }
    }

    /// Starts one GPU or all GPUs, if they were requested or the work justifies it: `operations`
    /// operations divided among `threads` threads. If `Auto` cannot use a GPU, the returned text
    /// gives the reason.
    pub fn start<T>(
        self,
        operations: f64,
        threads: usize,
        start: impl FnOnce(Option<usize>) -> Result<T>,
    ) -> Result<(Option<T>, Option<String>)> {
        let pays = operations >= MIN_SECONDS * OPERATIONS * threads as f64;
        let ordinal = match self {
            DeviceChoice::Cuda(ordinal) => ordinal,
            DeviceChoice::Auto if pays && Device::is_likely() => None,
            DeviceChoice::Auto | DeviceChoice::Cpu => return Ok((None, None)),
        };
        match start(ordinal) {
            Ok(started) => Ok((Some(started), None)),
            Err(reason) if self.excuses(&reason) => {
                Ok((None, Some(format!("the GPU is not used: {reason}"))))
            }
            Err(other) => Err(other),
        }
    }
}

/// Approximate number of operations per row.
fn operations(plan: &Plan) -> f64 {
    let (d, m) = (plan.dims() as f64, plan.features.points().len() as f64);
    let features = if plan.collect.kernel { plan.bandwidths.len() as f64 } else { 0.0 };
    let points = if plan.needs_nearest() || plan.collect.kernel { m } else { 0.0 };
    points * (2.0 * d + PER_KERNEL_VALUE * features)
        + if plan.collect.moments { d * d } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_none_are_refused() {
        assert_eq!(DeviceChoice::from_name("auto").unwrap(), DeviceChoice::default());
        for name in ["", "CUDA", "cuda:", "cuda:-1", "cuda:one", "gpu"] {
            let error = DeviceChoice::from_name(name).unwrap_err().to_string();
            assert!(error.contains("auto, cpu, cuda or cuda:N"), "{error}");
        }
    }
}
