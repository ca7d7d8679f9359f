//! The engines by name.

use super::{Cpu, Cuda, Engine, Scalar};
use crate::error::Result;
use crate::plan::Plan;
use std::sync::Arc;

/// Which engine runs the pass. All give the same sums.
///
/// ```
/// use nysketch_core::{EngineKind, PlanParams, Sketch, SketchParams, Table, plan_for};
/// # fn main() -> nysketch_core::Result<()> {
/// let table = Table::unnamed(2, (0..400).map(|i| f64::from(i).sin()).collect())?;
/// let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default())?.0);
/// let by = |engine| Sketch::of(&plan, &table, SketchParams::default().engine(engine), &());
/// assert_eq!(by(EngineKind::Cpu)?.to_bytes(), by(EngineKind::Scalar)?.to_bytes());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum EngineKind {
    /// Vector instructions of this processor.
    #[default]
    Cpu,
    /// One row at a time, as FORMAT.md defines it: slow, for checks.
    Scalar,
    /// The GPU of this number, from 0, or all of them in turn, a thread each. It is opened with the first rows.
    Cuda(Option<usize>),
}

impl EngineKind {
    /// Opens what the engine of a plan works on, so that it is known before any row is read whether it can be used.
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
