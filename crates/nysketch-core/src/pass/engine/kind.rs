//! The engines by name.

use super::{Cpu, Cuda, Engine, Scalar};
use crate::error::Result;
use crate::plan::Plan;
use std::sync::Arc;

/// The engine of a pass. All engines give the same sums.
///
/// ```
/// use nysketch_core::{EngineKind, PlanParams, Sketch, SketchParams, Table, plan_for};
/// # fn main() -> nysketch_core::Result<()> {
/// let table = Table::unnamed(2, (0..400).map(|i| f64::from(i).sin()).collect())?;
/// let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default())?.plan);
/// let params = SketchParams::default();
/// let fast = Sketch::of(&plan, &table, params.engine(EngineKind::Cpu), &())?;
/// let slow = Sketch::of(&plan, &table, params.engine(EngineKind::Scalar), &())?;
/// assert_eq!(fast.to_bytes(), slow.to_bytes());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum EngineKind {
    /// Vector instructions of the CPU.
    #[default]
    Cpu,
    /// One row at a time, as defined in FORMAT.md: slow, for checks.
    Scalar,
    /// The GPU with this number, from 0, or all GPUs, assigned to threads in turn. It is opened
    /// when the first rows arrive.
    Cuda(Option<usize>),
}

impl EngineKind {
    /// Opens the device of the engine, so that a failure is known before any row is read.
    pub(super) fn prepare(self, plan: &Arc<Plan>) -> Result<()> {
        match self {
            EngineKind::Cpu | EngineKind::Scalar => Ok(()),
            EngineKind::Cuda(ordinal) => Cuda::new(plan.clone(), ordinal).prepare().map(|_| ()),
        }
    }

    /// An engine without rows.
    pub fn start(self, plan: &Arc<Plan>) -> Box<dyn Engine> {
        match self {
            EngineKind::Cpu => Box::new(Cpu::new(plan.clone())),
            EngineKind::Scalar => Box::new(Scalar::new(plan.clone())),
            EngineKind::Cuda(ordinal) => Box::new(Cuda::new(plan.clone(), ordinal)),
        }
    }
}
